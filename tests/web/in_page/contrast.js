// Texts of a page whose contrast with what is behind them is below 4.5, as the browser draws it.
() => {
  const wrong = new Map();
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const rgba = (colour) => {
    if (!known.has(colour)) {
      canvas.canvas.width = 1;
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      known.set(colour, [...canvas.getImageData(0, 0, 1, 1).data]);
    }
    return known.get(colour);
  };
  const over = (top, ground) => {
    const alpha = top[3] / 255;
    return [0, 1, 2].map((at) => top[at] * alpha + ground[at] * (1 - alpha)).concat(255);
  };
  const light = (colour) => {
    const [r, g, b] = colour.map((value) => value / 255).map((value) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (one, other) => {
    const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const ground = (one) => {
    const grounds = [];
    for (let at = one; at; at = at.parentElement) grounds.unshift(rgba(getComputedStyle(at).backgroundColor));
    return grounds.reduce((below, top) => over(top, below), rgba(matchMedia("(prefers-color-scheme: dark)").matches ? "#000" : "#fff"));
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let least = 21, count = 0;
  while (walker.nextNode()) {
    const one = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !one.checkVisibility({ checkVisibilityCSS: true, contentVisibilityAuto: false })) continue;
    if (one.closest(".sr, script, option, [aria-disabled=true], :disabled, svg")) continue;
    const style = getComputedStyle(one), below = ground(one), found = ratio(over(rgba(style.color), below), below);
    count += 1;
    least = Math.min(least, found);
    if (found < 4.5) wrong.set(`${style.color} on ${below.slice(0, 3).map(Math.round)}: ${found.toFixed(2)}`, `${one.className || one.tagName} “${walker.currentNode.textContent.trim().slice(0, 40)}”`);
  }
  return { least: Math.round(least * 100) / 100, count, wrong: [...wrong].map(([pair, where]) => `${pair} ${where}`) };
}
