// What a person has typed is kept in this tab, by the thing it is about, until a server has taken it. A form is sent
// once, however often its button is pressed.
"use strict";
(() => {
  const KEPT = "ripstop draft ", SENT = "ripstop sent";
  const store = (() => { try { return window.sessionStorage; } catch { return null; } })();
  const arrival = performance.getEntriesByType("navigation")[0];
  // a form that was taken leads on to another page; one that found no server, or was refused, does not
  if (arrival?.redirectCount) for (const key of JSON.parse(store?.getItem(SENT) || "[]")) store.removeItem(key);
  store?.removeItem(SENT);
  for (const field of document.querySelectorAll("textarea[data-draft]")) {
    const key = KEPT + field.dataset.draft;
    const kept = store?.getItem(key);
    if (kept && field.value === field.defaultValue) field.value = kept;
    field.addEventListener("input", () => {
      try { if (field.value === field.defaultValue) store?.removeItem(key); else store?.setItem(key, field.value); } catch { /* full */ }
      count(field);
    });
    count(field);
  }
  function count(field) {
    const place = document.querySelector(`[data-lines="${CSS.escape(field.id)}"]`);
    if (place) place.textContent = String(field.value.split("\n").length);
  }

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.dataset.sent) return event.preventDefault();
    if (form.method !== "post") return;
    form.dataset.sent = "1";
    const sent = [...form.elements].filter((field) => field.dataset.draft).map((field) => KEPT + field.dataset.draft);
    if (sent.length) store?.setItem(SENT, JSON.stringify(sent));
    form.setAttribute("aria-busy", "true");
  });
  // Back shows the page as it was left: its forms can be sent again
  addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-sent]")) {
      delete form.dataset.sent;
      form.removeAttribute("aria-busy");
    }
  });

  document.addEventListener("change", (event) => {
    if (event.target.matches("select[data-submit]")) event.target.form.requestSubmit();
  });

  // Back shows the place that was left: a browser remembers it for the page, but not for its panes
  const place = `ripstop place ${location.href}`, panes = () => [...document.querySelectorAll(".scroll, .list")];
  addEventListener("pagehide", () => {
    try { store?.setItem(place, JSON.stringify(panes().map((pane) => pane.scrollTop))); } catch { /* full */ }
  });
  if (arrival?.type === "back_forward") {
    const tops = JSON.parse(store?.getItem(place) || "[]");
    panes().forEach((pane, at) => { if (tops[at]) pane.scrollTop = tops[at]; });
  }

  const notice = document.getElementById("notice");
  if (notice) notice.focus({ preventScroll: true });
})();
