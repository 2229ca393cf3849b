// Scales of charts.

import { s } from "./dom.js";

/** A logarithmic scale from [low, high] to [from, to]; with marks at powers of ten, and between them where they are few. */
export function logScale(low, high, from, to) {
  const [a, b] = [Math.log10(low), Math.log10(high)];
  const wide = b - a || 1;
  const at = (value) => from + ((Math.log10(value) - a) / wide) * (to - from);
  const back = (place) => 10 ** (a + ((place - from) / (to - from)) * wide);
  const powers = [];
  for (let power = Math.ceil(a - 1e-9); power <= b + 1e-9; power += 1) powers.push(10 ** power);
  const marks = powers.length > 2 ? powers : [1, 2, 5].flatMap((digit) => Array.from({ length: 40 }, (_, i) => digit * 10 ** (i - 15))).filter((x) => x >= low && x <= high).sort((x, y) => x - y);
  return { at, back, marks };
}

/** A linear scale, with about five round marks. */
export function linearScale(low, high, from, to) {
  const wide = high - low || 1;
  const at = (value) => from + ((value - low) / wide) * (to - from);
  const back = (place) => low + ((place - from) / (to - from)) * wide;
  const step = [1, 2, 5, 10].map((digit) => digit * 10 ** Math.floor(Math.log10(wide / 5))).find((one) => wide / one <= 7) ?? wide;
  const marks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i += 1) marks.push(i * step);
  return { at, back, marks };
}

/** Marks that leave `least` pixels between each other. */
export function thinned(scale, least) {
  const kept = [];
  for (const mark of scale.marks) if (!kept.length || Math.abs(scale.at(mark) - scale.at(kept.at(-1))) >= least) kept.push(mark);
  return kept;
}

/** Grid and texts of both axes. box: {left, right, top, bottom}. */
export function axes(x, y, box, textX, textY, labelX, labelY) {
  const parts = [];
  for (const mark of thinned(y, 26)) {
    const place = y.at(mark);
    parts.push(s("line", { class: "gridline", x1: box.left, x2: box.right, y1: place, y2: place }));
    parts.push(s("text", { x: box.left - 6, y: place + 4, "text-anchor": "end" }, textY(mark)));
  }
  for (const mark of thinned(x, 58)) {
    const place = x.at(mark);
    parts.push(s("line", { class: "gridline", x1: place, x2: place, y1: box.top, y2: box.bottom }));
    parts.push(s("text", { x: place, y: box.bottom + 16, "text-anchor": "middle" }, textX(mark)));
  }
  parts.push(s("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }));
  parts.push(s("text", { class: "quiet", x: (box.left + box.right) / 2, y: box.bottom + 34, "text-anchor": "middle" }, labelX));
  parts.push(s("text", { class: "quiet", x: box.left, y: box.top - 8, "text-anchor": "start" }, labelY));
  return parts;
}
