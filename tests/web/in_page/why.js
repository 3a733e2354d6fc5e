// The cards of a why page, as data.
() => [...document.querySelectorAll(".whys > section")].map((card) => ({
  record: card.querySelector("header .mono").textContent.match(/\d+/)[0],
  facts: [...card.querySelectorAll("dl > dt")].map((name) => [name.textContent, name.nextElementSibling.textContent.trim()]),
  guard: card.querySelector("dl") ? card.querySelector("h3").textContent : "",
  reasons: [...card.querySelectorAll(".cond")].map((row) => ({
    mark: row.matches(".yes") ? "✓ " : row.matches(".no") ? "✗ " : "",
    text: row.querySelector("p bdi").textContent,
    taken: row.querySelector("p strong") !== null,
    source: row.querySelector(".src")?.textContent || "",
    tree: [...row.querySelectorAll(".tree li")].map((line) =>
      "    " + "  ".repeat(Number(line.className.match(/deep(\d)/)[1])) + line.textContent),
  })),
  ways: [...card.querySelectorAll("footer form, footer a")].map((way) => way.matches("form")
    ? ["resume", ...[...way.querySelectorAll("input[name^='raise.']")].map((field) => `${field.name.slice(6)}=${field.value}`)]
    : ["fork", new URL(way.href).searchParams.get("at") || ""]),
}))
