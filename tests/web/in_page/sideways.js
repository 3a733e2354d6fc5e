// What makes a page wider than its window.
() => {
  const wrong = [], page = document.scrollingElement;
  if (page.scrollWidth > page.clientWidth) wrong.push(`the page is ${page.scrollWidth} px wide in ${page.clientWidth}`);
  const own = (one) => ["auto", "scroll"].includes(getComputedStyle(one).overflowX);
  for (const pane of document.querySelectorAll("main, .scroll, .list, .pane, .lead, .talk, .log, .aside, .panel, .with-aside"))
    if (pane.scrollWidth > pane.clientWidth + 1) wrong.push(`${pane.className || pane.tagName} is ${pane.scrollWidth} px wide in ${pane.clientWidth}`);
  for (const one of document.querySelectorAll("body *")) {
    if (!one.checkVisibility({ contentVisibilityAuto: false }) || one.closest(".sr, .skip, svg")) continue;
    const box = one.getBoundingClientRect();
    if (!box.width || box.right <= innerWidth + 1) continue;
    let holder = one.parentElement;
    while (holder && !(own(holder) || ["hidden", "clip"].includes(getComputedStyle(holder).overflowX) && holder.matches(":not(main, .shell, body, html)"))) holder = holder.parentElement;
    if (!holder || holder.matches("main, .shell, body, html, .scroll, .list, .log")) wrong.push(`ends at ${Math.round(box.right)} px: ${one.outerHTML.slice(0, 120)}`);
  }
  return wrong.slice(0, 5);
}
