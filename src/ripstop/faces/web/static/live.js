// One stream a page. Events carry no HTML: they say what is new, and the page fetches what the server renders of it.
// A hidden tab closes its stream and catches up when it is seen again.
"use strict";
(() => {
  const body = document.body, light = document.getElementById("live"), said = document.getElementById("said");
  // the only place where text becomes HTML; it is given nothing but what our own server rendered
  const policy = window.trustedTypes
    ? trustedTypes.createPolicy("ripstop", { createHTML: (html) => html })
    : { createHTML: (html) => html };
  const listeners = {};
  let source = null, cursor = "", lostAt = 0, lastWords = 0;

  const ripstop = (window.ripstop = {
    on(kind, act) { (listeners[kind] ||= []).push(act); },
    fragment(html) {
      const holder = document.createElement("template");
      holder.innerHTML = policy.createHTML(html);
      return holder.content;
    },
    async get(address) {
      const answer = await fetch(address, { headers: { "X-Fragment": "1" }, credentials: "same-origin" });
      if (answer.status === 401 || answer.redirected && new URL(answer.url).pathname === "/login") location.reload();
      return answer.ok ? ripstop.fragment(await answer.text()) : null;
    },
    // at most one announcement in five seconds, so that a screen reader is not flooded
    announce(text) {
      if (!said || Date.now() - lastWords < 5000) return;
      lastWords = Date.now();
      said.textContent = text;
    },
    // runs `act` at most every `pause` milliseconds, and once more after the last call
    throttled(act, pause) {
      let timer = 0, again = false;
      const run = async () => {
        timer = setTimeout(() => { timer = 0; if (again) { again = false; run(); } }, pause);
        try { await act(); } catch { /* the server is gone; the light says so */ }
      };
      return () => { if (timer) again = true; else run(); };
    },
    // puts the parts of this page that have changed in their place: whatever has data-swap
    refresh: null,
  });
  ripstop.refresh = ripstop.throttled(async () => {
    const fresh = await ripstop.get(location.href);
    if (!fresh) return;
    for (const old of document.querySelectorAll("[data-swap]:not([data-keep])")) {
      const now = fresh.querySelector(`[data-swap="${CSS.escape(old.dataset.swap)}"]`);
      if (!now || old.contains(document.activeElement)) continue;
      // a form is another one each time; what it depends on says whether it has changed
      if (old.dataset.same === undefined ? now.outerHTML === old.outerHTML : now.dataset.same === old.dataset.same) continue;
      for (const field of old.querySelectorAll("textarea[id]")) {
        const same = now.querySelector(`#${CSS.escape(field.id)}`);
        if (same) same.value = field.value;
      }
      old.replaceWith(now);
    }
  }, 500);

  function state(name) {
    if (!light || light.dataset.state === name) return; // with each event, and mostly the same
    light.dataset.state = name;
    const word = light.querySelector("b");
    if (word) word.textContent = light.dataset[name] || "";
  }

  function open() {
    if (source || !body.dataset.live || document.hidden) return;
    const address = new URL(body.dataset.live, location.href);
    if (cursor) address.searchParams.set("after", cursor);
    source = new EventSource(address);
    source.onerror = () => {
      lostAt ||= Date.now();
      if (source && source.readyState === EventSource.CLOSED) { source = null; setTimeout(open, 3000); }
    };
    for (const kind of ["hello", "records", "run", "began", "retrying", "token", "desk", "lost", "bye"])
      source.addEventListener(kind, (event) => {
        if (event.lastEventId) cursor = event.lastEventId;
        lostAt = 0;
        state("on");
        const data = JSON.parse(event.data);
        for (const act of listeners[kind] || []) act(data);
      });
  }

  function close() {
    if (source) source.close();
    source = null;
    lostAt = 0;
    state("off");
  }

  setInterval(() => {
    if (lostAt) state(Date.now() - lostAt > 30000 ? "gone" : Date.now() - lostAt > 3000 ? "lost" : "on");
  }, 1000);
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  addEventListener("pageshow", open);

  ripstop.on("bye", ({ again }) => {
    close();
    state("gone");
    if (again) setTimeout(open, 1500);
  });
  ripstop.on("lost", () => ripstop.refresh());
  ripstop.on("desk", ({ count, added, gone }) => {
    for (const one of document.querySelectorAll('[data-count="desk"]')) {
      one.textContent = count.toLocaleString("en");
      one.hidden = one.classList.contains("badge") && !count;
      one.classList.toggle("hot", one.classList.contains("count") && count > 0);
    }
    document.title = (count ? `(${count}) ` : "") + document.title.replace(/^\([\d,]+\) /, "");
    const matter = document.querySelector("[data-matter]");
    if (matter && gone.includes(matter.dataset.matter)) settle(matter);
    if (added.length) ripstop.announce(document.body.dataset.lang === "zh" ? `${added.length} 个新问题` : `${added.length} new`);
    const list = document.querySelector("[data-desk-list]");
    if (list) ripstop.refresh();
  });
  ripstop.on("run", ({ run, new: isNew, parent }) => {
    if (document.querySelector(`[data-swap="run ${CSS.escape(run)}"]`)) ripstop.refresh();
    else if (isNew && !parent) { newer(); ripstop.refresh(); }
  });

  // what was answered meanwhile turns into what was answered; what a person had typed stays
  async function settle(matter) {
    const fresh = await ripstop.get(matter.dataset.href || location.href);
    const now = fresh && fresh.querySelector("[data-answered]");
    if (!now) return;
    const typed = [...matter.querySelectorAll("textarea")].map((one) => one.value).find((text) => text.trim());
    const kept = matter.querySelector("textarea");
    matter.replaceWith(now);
    if (!typed || !kept) return;
    const label = document.createElement("label"), words = document.createElement("span");
    label.className = "field body";
    words.textContent = document.body.dataset.typed;
    kept.value = typed;
    kept.readOnly = true;
    label.append(words, kept);
    now.append(label);
  }

  let count = 0;
  function newer() {
    const line = document.querySelector(".newer");
    if (!line) return;
    count += 1;
    line.hidden = false;
    const place = line.querySelector("[data-n]");
    if (place) place.textContent = String(count);
  }

  open();
})();
