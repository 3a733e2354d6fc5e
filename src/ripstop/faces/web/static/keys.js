// Keys open, move and focus; a single key never decides. They are off in fields, with Ctrl, Alt or Meta, and where the
// person has turned them off; Ctrl or Cmd with Enter sends the form that has the focus. The table is keys.py.
"use strict";
(() => {
  const PLACES = { d: "/desk", r: "/runs", c: "/chats", o: "/documents", w: "/workflows" };
  const ITEMS = "a.item, table.rows .c-id a";
  let afterG = 0;

  const isField = (one) => one && (one.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(one.tagName));
  const find = (selector) => [...document.querySelectorAll(selector)].find((one) => one.checkVisibility());
  const follow = (selector) => { const link = find(selector); if (link) link.click(); return Boolean(link); };
  const focus = (selector) => { const one = find(selector); if (one) one.focus(); return Boolean(one); };

  const all = (selector) => [...document.querySelectorAll(selector)].filter((one) => one.checkVisibility());
  const around = (selector) => document.activeElement?.closest?.(selector);

  function move(step) {
    const items = all(ITEMS);
    if (!items.length) return false;
    const at = items.findIndex((one) => one === document.activeElement || one.getAttribute("aria-current") === "true");
    const focused = items.indexOf(document.activeElement);
    const next = items[Math.min(items.length - 1, Math.max(0, (focused >= 0 ? focused : at) + step))];
    next.focus();
    next.scrollIntoView({ block: "nearest" });
    return true;
  }

  function turn(step) {
    const found = all("li.turn"), turns = found.length ? found : all("li.rec");
    if (!turns.length) return false;
    const at = turns.findIndex((one) => one.contains(document.activeElement));
    const next = turns[at < 0 ? (step > 0 ? 0 : turns.length - 1) : Math.min(turns.length - 1, Math.max(0, at + step))];
    next.tabIndex = -1;
    next.focus();
    next.scrollIntoView({ block: "nearest" });
    return true;
  }
  const here = (selector) => {
    const row = around("li.turn") || around("li.rec"), link = row?.querySelector(selector);
    if (link) link.click();
    return Boolean(link);
  };
  function fork() {
    const row = around("li.turn, li.rec"), button = find('[aria-keyshortcuts~="f"]');
    if (!button) return false;
    const at = row && (row.dataset.last || row.id.slice(1));
    location.href = at ? `${button.href.split("?")[0]}?at=${at}` : button.href;
    return true;
  }
  function records() {
    const row = around("li.turn"), details = row?.querySelector("details.recs");
    if (!details) return false;
    if (details.open) { row.tabIndex = -1; row.focus(); }  // what has the focus may be one of the records
    details.open = !details.open;
    return true;
  }
  function back() {
    const dialog = document.querySelector("dialog[open]");
    if (dialog) { dialog.close(); return true; }
    return follow("a.back") || follow(".crumbs a");
  }

  const ACTS = {
    "?": () => { location.href = "/keys"; return true; },
    "/": () => focus('input[type="search"]'),
    j: () => move(1),
    k: () => move(-1),
    o: () => { const one = document.activeElement; if (!one?.matches?.(ITEMS)) return false; one.click(); return true; },
    u: back,
    Escape: back,
    c: () => follow('[aria-keyshortcuts~="c"]'),
    v: () => follow('[aria-keyshortcuts~="v"]'),
    e: () => follow('[aria-keyshortcuts~="e"]'),
    P: () => focus('[aria-keyshortcuts~="Shift+P"]'),
    F: () => focus('[aria-keyshortcuts~="Shift+F"]') || focus(".decide textarea"),
    "[": () => turn(-1),
    "]": () => turn(1),
    w: () => here("a[data-why]"),
    x: records,
    f: fork,
    l: () => { const pane = find("[data-timeline]")?.closest(".scroll"); if (pane) pane.scrollTop = pane.scrollHeight; return Boolean(pane); },
    n: () => { location.href = "/runs/new"; return true; },
  };

  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      const form = document.activeElement?.form || document.activeElement?.closest("form");
      if (form?.method === "post") {
        event.preventDefault();
        form.requestSubmit(form.querySelector("[data-sends]") || undefined);
      }
      return;
    }
    if (document.body.dataset.keys === "off" || event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
    if (isField(event.target)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (afterG && Date.now() - afterG < 1500 && PLACES[event.key]) {
      afterG = 0;
      location.href = PLACES[event.key];
      return event.preventDefault();
    }
    afterG = event.key === "g" ? Date.now() : 0;
    if (ACTS[event.key]?.()) event.preventDefault();
  });
})();
