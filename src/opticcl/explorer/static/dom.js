// Elements from code. Every text becomes a text node: markup in a name is shown, never parsed.

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

/** A square of a colour. */
export const swatch = (colour) => h("span", { class: "swatch", colour, "aria-hidden": "true" });

/** A part of the page that scrolls if it is too wide, by keyboard too. */
export const scrolling = (label, ...children) => h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, ...children);

const SHOWN = 3; // notes that are not folded

/** A line on a fabric that was left out; a reason that begins with its name is not prefixed with it again. */
const leftOut = ({ fabric, reason }) => `left out: ${reason.split(/[:\s]/, 1)[0] === fabric.split(":")[0] ? "" : `${fabric}: `}${reason}`;

/** All that a record says beside its answer, each line once. */
export const notesOf = (record) => [...new Set([...(record.caveats ?? []), ...record.notes, ...record.left_out.map(leftOut)])];

/** What a reader must know beside an answer: the first notes, and the others folded. */
export function notes(lines) {
  const items = (some) => h("ul", {}, some.map((one) => h("li", {}, one)));
  const others = lines.slice(SHOWN);
  return lines.length ? h("section", {}, h("h2", {}, "Read with care"), items(lines.slice(0, SHOWN)), others.length ? h("details", {}, h("summary", {}, `${others.length} more`), items(others)) : null) : "";
}

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
