// Measures the contrast of every visible piece of text against the colour
// behind it, by WCAG 2.2 (relative luminance). Text over pictures and text of
// disabled controls is left out, as the standard does.
(() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) => {
    const a = top[3];
    return [0, 1, 2].map((i) => top[i] * a + below[i] * (1 - a)).concat(1);
  };
  const luminance = (c) => {
    const [r, g, b] = c.map((v) => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (e) => {
    const layers = [];
    for (; e; e = e.parentElement) {
      const style = getComputedStyle(e);
      if (style.backgroundImage !== "none") return null;
      const c = rgba(style.backgroundColor);
      layers.push(c);
      if (c[3] === 1) break;
      if (e.matches("dialog:modal,[popover]:popover-open")) break;
    }
    const canvasColour = getComputedStyle(document.documentElement).colorScheme.includes("dark") ? [18, 18, 18, 1] : [255, 255, 255, 1];
    return layers.reduceRight((below, c) => over(c, below), canvasColour);
  };
  const faint = new Map();
  let measured = 0;
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n = walk.nextNode(); n; n = walk.nextNode()) {
    const text = n.data.trim();
    const e = n.parentElement;
    if (!text || !e.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    if (e.closest("[disabled],[aria-disabled=true],[aria-hidden=true],script,style,option")) continue;
    const box = e.getBoundingClientRect();
    if (box.width < 2 || box.height < 2) continue; // for screen readers alone
    const back = behind(e);
    if (!back) continue;
    const style = getComputedStyle(e);
    let opacity = 1;
    for (let p = e; p; p = p.parentElement) opacity *= Number(getComputedStyle(p).opacity);
    const colour = rgba(style.color);
    colour[3] *= opacity;
    const [a, b] = [luminance(over(colour, back)), luminance(back)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const size = parseFloat(style.fontSize);
    const needed = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
    measured++;
    if (ratio < needed - 0.005) {
      const element = e.tagName.toLowerCase() + (e.dataset.testid ? `[${e.dataset.testid}]` : e.className ? "." + String(e.className).split(" ").join(".") : "");
      faint.set(element, { Text: text.slice(0, 40), Element: element, Ratio: ratio, Needed: needed });
    }
  }
  return { Faint: [...faint.values()], Measured: measured };
})()
