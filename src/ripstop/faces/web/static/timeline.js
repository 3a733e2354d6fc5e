// The timeline of a run and the talk of a conversation, as they grow. The reader is followed to the end only from the
// end; from anywhere else a button says how much is new.
"use strict";
(() => {
  const MOST_ROWS = 600, ripstop = window.ripstop;
  const list = document.querySelector("[data-timeline]"), talk = document.querySelector("[data-talk]");
  const run = (list || talk)?.dataset.run;
  if (!ripstop || !run) return;
  // on narrow screens the whole page scrolls, not the pane, and other things follow the list
  const page = document.scrollingElement, box = talk || list.closest(".scroll") || list;
  const scroller = () => {
    for (let one = list || talk; one; one = one.parentElement)
      if (one.scrollHeight > one.clientHeight + 1 && /auto|scroll/.test(getComputedStyle(one).overflowY)) return one;
    return page;
  };
  const isAtEnd = () => {
    const pane = scroller(), end = box.getBoundingClientRect().bottom;
    if (pane === page) return end > 0 && end < innerHeight + 80;
    return pane.scrollHeight - pane.scrollTop - pane.clientHeight < 80;
  };
  const toEnd = () => {
    const pane = scroller();
    if (pane === page) box.scrollIntoView({ block: "end" });
    else pane.scrollTop = pane.scrollHeight;
  };
  let fresh = 0;

  const more = document.querySelector("[data-more]");
  function moved(wasAtEnd, added) {
    fresh = wasAtEnd ? 0 : fresh + added;
    if (wasAtEnd) toEnd();
    if (!more) return;
    more.hidden = !fresh;
    const place = more.querySelector("[data-n]");
    if (place) place.textContent = String(fresh);
  }
  more?.addEventListener("click", () => { fresh = 0; more.hidden = true; toEnd(); });
  document.addEventListener("scroll", () => { if (fresh && isAtEnd()) moved(true, 0); }, { passive: true, capture: true });

  const grow = ripstop.throttled(async () => {
    const see = list.dataset.see, last = Number(list.dataset.last || 0);
    // only a list that shows the end of the run grows
    const rows = list.dataset.rows && await ripstop.get(`${list.dataset.rows}?see=${see}&after=${see === "turns" ? Math.max(0, last - 1) : last}`);
    if (rows) {
      const wasAtEnd = isAtEnd();
      let added = 0;
      for (const row of [...rows.querySelectorAll("li[id]")]) {
        if (row.parentElement?.closest("li[id]")) continue; // a record inside a turn
        const old = document.getElementById(row.id);
        list.dataset.last = String(Math.max(Number(list.dataset.last || 0), Number(row.dataset.last || row.id.slice(1))));
        if (old) {
          if (old.contains(document.activeElement) || old.querySelector("details[open], .why")) continue;
          old.replaceWith(row);
        } else { list.append(row); added += 1; }
      }
      while (list.children.length > MOST_ROWS) list.firstElementChild.remove();
      moved(wasAtEnd, added);
    }
    const summary = document.querySelector("[data-summary]");
    const now = summary && await ripstop.get(`${summary.dataset.summary}?see=${see}`);
    if (!now) return;
    const wasAtEnd = isAtEnd();
    for (const piece of now.querySelectorAll("[data-piece]")) {
      const old = document.querySelector(`[data-piece="${CSS.escape(piece.dataset.piece)}"]`);
      if (old && old.outerHTML !== piece.outerHTML && !old.contains(document.activeElement)) old.replaceWith(piece);
    }
    if (wasAtEnd) toEnd();
  }, 250);

  const speak = ripstop.throttled(async () => {
    const now = await ripstop.get(`${talk.dataset.talk}?after=${talk.dataset.length}`);
    if (!now) return;
    const wasAtEnd = isAtEnd(), entries = [...now.querySelectorAll("[id^=r]")];
    for (const entry of entries) {
      const number = Number(entry.id.slice(1));
      if (number <= Number(talk.dataset.length)) continue;
      talk.append(entry);
      if (entry.matches("article")) ripstop.announce(entry.textContent.trim().slice(0, 200));
    }
    const numbers = entries.map((entry) => Number(entry.id.slice(1)));
    talk.dataset.length = String(Math.max(Number(talk.dataset.length), ...numbers));
    moved(wasAtEnd, entries.length);
  }, 250);

  ripstop.on("records", (event) => { if (event.run === run) { if (list) grow(); else speak(); } });
  ripstop.on("lost", () => { if (list) grow(); else speak(); });
  // "Started." is old news once the run is not at work any more
  ripstop.on("run", ({ run: of, status }) => {
    if (of === run && status !== "working") setTimeout(() => document.getElementById("notice")?.remove(), 4000);
  });
  ripstop.on("began", ({ run: of, who, attempt }) => {
    if (of === run && who) ripstop.announce(attempt > 1 ? `${who}: ${attempt}` : who);
    if (of === run && list) grow();
  });
  ripstop.on("retrying", ({ run: of, number, reason, seconds }) => {
    const note = of === run && document.querySelector(`[data-retry="${number}"]`);
    if (note) note.textContent = `${reason} · ${Math.ceil(seconds)} s`;
  });

  // what acts or turns the direction of text is written out, as the server does
  const visible = (text) => text.replace(/[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
  // words of calls under way: joined, and written twenty times a second
  const waiting = new Map();
  const write = ripstop.throttled(() => {
    const wasAtEnd = isAtEnd();
    for (const [number, { attempt, offset, text }] of waiting) {
      const box = document.querySelector(`[data-stream="${number}"]`);
      if (!box) continue;
      if (Number(box.dataset.attempt || 1) < attempt) { box.textContent = ""; box.dataset.attempt = String(attempt); box.dataset.length = "0"; }
      // in characters, as the server counts; some are two units of a string here
      const have = Number(box.dataset.length), characters = [...text];
      if (offset <= have) {
        box.append(visible(characters.slice(have - offset).join("")));
        box.dataset.length = String(Math.max(have, offset + characters.length));
      } else if (list) grow(); // a piece is missing
      waiting.delete(number);
    }
    if (wasAtEnd) toEnd();
  }, 50);
  ripstop.on("token", ({ run: of, number, attempt, offset, text }) => {
    if (of !== run) return;
    const before = waiting.get(number);
    waiting.set(number, before && before.attempt === attempt ? { attempt, offset: before.offset, text: before.text + text } : { attempt, offset, text });
    write();
  });

  // why, and the records of a turn, in their place
  document.addEventListener("click", async (event) => {
    const link = event.target.closest("a[data-why]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const turn = link.closest("li"), shown = turn?.querySelector(":scope .whys");
    if (shown) { shown.remove(); link.setAttribute("aria-expanded", "false"); return; }
    const card = await ripstop.get(link.href);
    if (!card || !turn) { location.href = link.href; return; }
    turn.querySelector("details.recs")?.before(card) ?? turn.append(card);
    link.setAttribute("aria-expanded", "true");
  });
  document.addEventListener("toggle", async (event) => {
    const details = event.target;
    if (!details.matches?.("details.recs[data-rows]") || !details.open || details.dataset.loaded) return;
    const rows = await ripstop.get(details.dataset.rows);
    if (!rows) return;
    details.dataset.loaded = "1";
    let holder = details.querySelector("ol.records");
    if (!holder) { holder = document.createElement("ol"); holder.className = "records"; details.append(holder); }
    holder.replaceChildren(...rows.querySelectorAll("li"));
  }, true);

  if (!location.hash && (talk || list?.dataset.tail)) toEnd();
})();
