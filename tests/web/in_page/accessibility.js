// What is wrong with the names, labels, landmarks, headings and targets of a page.
() => {
  const wrong = [];
  const seen = (one) => one.checkVisibility({ checkVisibilityCSS: true, checkOpacity: false, contentVisibilityAuto: false });
  const text = (one) => {
    let found = "";
    for (const child of one.childNodes) {
      if (child.nodeType === Node.TEXT_NODE) found += child.textContent;
      else if (child.nodeType === Node.ELEMENT_NODE && child.getAttribute("aria-hidden") !== "true") found += text(child);
    }
    return found;
  };
  const byId = (ids) => (ids || "").split(/\s+/).filter(Boolean).map((id) => document.getElementById(id));
  const name = (one) => (
    byId(one.getAttribute("aria-labelledby")).map((label) => label ? text(label) : "").join(" ").trim()
    || (one.getAttribute("aria-label") || "").trim()
    || [...(one.labels || [])].map(text).join(" ").trim()
    || (one.matches("input, select, textarea") ? "" : text(one).trim())
    || (one.getAttribute("title") || "").trim()
  );
  const shown = (one) => one.outerHTML.slice(0, 160);

  if (!document.documentElement.lang) wrong.push("the page has no language");
  if (!document.title.trim()) wrong.push("the page has no title");
  const h1 = document.querySelectorAll("h1");
  if (h1.length !== 1) wrong.push(`${h1.length} h1`);
  else if (!text(h1[0]).trim()) wrong.push("the h1 is empty");
  for (const heading of document.querySelectorAll("h2, h3, h4, h5, h6"))
    if (!text(heading).trim() && !heading.closest(".prose")) wrong.push(`an empty heading: ${shown(heading)}`);
  if (document.querySelectorAll("main").length !== 1) wrong.push("not one main");
  const places = [...document.querySelectorAll("nav, aside")].filter(seen);
  for (const place of places) if (!place.getAttribute("aria-label")) wrong.push(`no label: ${shown(place)}`);
  const navs = places.filter((one) => one.matches("nav")).map((one) => one.getAttribute("aria-label"));
  if (new Set(navs).size !== navs.length) wrong.push(`two navigations have one name: ${navs}`);

  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  for (const id of new Set(ids.filter((id, at) => ids.indexOf(id) !== at))) wrong.push(`id twice: ${id}`);
  for (const one of document.querySelectorAll("[aria-labelledby], [aria-describedby], label[for]"))
    for (const attribute of ["aria-labelledby", "aria-describedby", "for"])
      if (byId(one.getAttribute(attribute)).includes(null)) wrong.push(`${attribute} names nothing: ${shown(one)}`);

  for (const one of document.querySelectorAll("a[href], button, summary, input:not([type=hidden]), select, textarea, [role=button]")) {
    if (one.tabIndex > 0) wrong.push(`tabindex: ${shown(one)}`);
    if (!name(one)) wrong.push(`no name: ${shown(one)}`);
  }
  for (const one of document.querySelectorAll("svg")) {
    if (one.getAttribute("aria-hidden") === "true" || one.closest("[aria-hidden=true]")) continue;
    if (!["img", "group"].includes(one.getAttribute("role")) || !(one.getAttribute("aria-label") || one.getAttribute("aria-labelledby") || one.querySelector("title, desc")))
      wrong.push(`a picture without words: ${shown(one)}`);
  }
  for (const table of document.querySelectorAll("table")) if (!table.closest(".prose") && !table.caption) wrong.push(`no caption: ${shown(table)}`);
  for (const time of document.querySelectorAll("time")) if (!time.dateTime) wrong.push(`a time without datetime: ${shown(time)}`);
  for (const list of document.querySelectorAll("ul, ol"))
    for (const child of list.children) if (!child.matches("li, script, template")) wrong.push(`in a list: ${shown(child)}`);

  // targets: 24 by 24 pixels, unless a link is part of a sentence or another one does the same
  for (const one of document.querySelectorAll("a[href], button, summary, input:not([type=hidden]), select, textarea")) {
    if (!seen(one) || one.closest(".sr, .skip, .prose") || one.matches(".sr")) continue;
    const label = one.matches("[type=radio], [type=checkbox]") && one.closest("label");
    const box = (label || one).getBoundingClientRect();
    let { width, height } = box;
    if (!width || !height) continue;
    const after = getComputedStyle(one, "::after");
    if (after.content !== "none" && after.position === "absolute") continue; // its target is larger than itself
    if (getComputedStyle(one).display === "inline" && one.matches("a") && one.parentElement.textContent.trim() !== one.textContent.trim()) continue;
    if (width < 23.5 || height < 23.5) wrong.push(`${width.toFixed(0)}×${height.toFixed(0)}: ${shown(one)}`);
  }
  return [...new Set(wrong)];
}
