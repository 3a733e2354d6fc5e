// Where the focus is after Tab, compared with where it was (`window.before`).
() => {
  const one = document.activeElement, before = window.before, box = one.getBoundingClientRect();
  const style = getComputedStyle(one), ring = (given) => given.outlineStyle !== "none" && parseFloat(given.outlineWidth) >= 1;
  const top = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
  return {
    is_over: one === document.body,
    in_order: Boolean(before.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING),
    is_ringed: ring(style) || ring(getComputedStyle(one, "::after")) || ring(getComputedStyle(one.closest("label, .choice") || one)),
    is_on_top: !top || top === one || one.contains(top) || top.contains(one) || Boolean(one.labels?.[0]?.contains(top)),
    shown: one.outerHTML.slice(0, 100),
  };
}
