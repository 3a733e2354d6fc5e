// What the interface says: not what agents, people and files are called or say, which is in elements of its own.
() => {
  const found = new Set(), add = (text) => { const flat = (text || "").replace(/\s+/g, " ").trim(); if (flat) found.add(flat); };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const one = walker.currentNode.parentElement;
    if (!one.closest("bdi, script, code, pre, option, svg, .mono, .prose, [dir=auto]")) add(walker.currentNode.textContent);
  }
  for (const one of document.querySelectorAll("[aria-label], [title], [placeholder]"))
    for (const name of ["aria-label", "title", "placeholder"]) if (!one.closest("svg, [dir=auto]")) add(one.getAttribute(name));
  return [...found];
}
