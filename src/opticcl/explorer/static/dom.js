// Elements from code. Every text becomes a text node: markup in a name is shown, never parsed.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "colour") element.style.background = value;
    else if (name === "value" || name === "checked" || name === "disabled") element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** An HTML element: h("td", {class: "number"}, "3"). Attributes that begin with "on" are listeners. */
export const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);

/** An SVG element, likewise. */
export const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

/** A square of a colour; that of a line is as bright as the line. */
export const swatch = (colour, line = false) => h("span", { class: line ? "swatch series" : "swatch", colour, "aria-hidden": "true" });

/** A part of the page that scrolls if it is too wide, by keyboard too. */
export const scrolling = (label, ...children) => h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, ...children);

/** Width of a character of a picture, a little above the mean [px]; pictures have larger texts on wide windows. */
export const letter = () => parseFloat(getComputedStyle(document.documentElement).fontSize) / 2;

/** Call `draw(width)` now and whenever the width of an element changes; returns a function that ends this. */
export function onWidth(element, draw) {
  let last = 0;
  const observer = new ResizeObserver(([entry]) => {
    const width = Math.round(entry.contentRect.width);
    if (width > 0 && width !== last) draw((last = width));
  });
  observer.observe(element);
  return () => observer.disconnect();
}
