"use strict";
// The page reads without this. Tables: a click on a heading sorts, words filter. Lines: the pointer names one, its name hides it.
// Texts of the page are only ever read and written as text.

const PREFIX = { n: 1e-9, u: 1e-6, m: 1e-3, k: 1e3, K: 1e3, M: 1e6, G: 1e9, T: 1e12 };

function magnitude(text) { // "5.775 us" -> 5.775e-6; null: no number
  const found = /^([+-]?[\d,]*\.?\d+)(?:\s*([A-Za-z/]+))?/.exec(text.trim());
  if (!found) return null;
  const unit = found[2] || "";
  const scale = /^[numkKMGT](s|b|B|b\/s|B\/s)$/.test(unit) ? PREFIX[unit[0]] : unit === "min" ? 60 : 1;
  return Number(found[1].replaceAll(",", "")) * scale;
}

function compare(a, b) {
  const [x, y] = [magnitude(a), magnitude(b)];
  if (x !== null && y !== null) return x - y;
  if ((x === null) !== (y === null)) return x === null ? 1 : -1;
  return a.localeCompare(b);
}

function element(name, attributes = {}, text = "") {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}

function sortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = element("button", { type: "button" }, head.textContent);
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      const rows = [...table.tBodies[0].rows];
      const text = (row) => row.cells[column].textContent;
      rows.sort((a, b) => compare(text(a), text(b)) * (down ? -1 : 1));
      table.tBodies[0].append(...rows);
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
    });
  });
}

function filter(section, tables) {
  const label = element("label", { class: "filter" }, "Show plans with ");
  const field = element("input", { type: "search", placeholder: "ramp ring" });
  const count = element("output");
  label.append(field, " ", count);
  tables[0].parentElement.before(label);
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0, all = 0;
    for (const table of tables) {
      for (const row of table.tBodies[0].rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        all += 1;
        shown += row.hidden ? 0 : 1;
      }
      const folded = table.closest("details");
      if (folded && words.length) folded.open = true;
    }
    count.textContent = words.length ? `${shown} of ${all}` : "";
  });
}

function lines(figure) {
  const drawn = [...figure.querySelectorAll("g.line")];
  if (!drawn.length) return;
  const named = element("p", { class: "named", "aria-live": "polite" }, "\u00a0");
  const list = element("ul", { class: "toggles", "aria-label": "Lines: press to hide or show" });
  for (const line of drawn) {
    const name = line.querySelector("title").textContent;
    const path = line.querySelector("path");
    const parts = [line, ...figure.querySelectorAll(`g.end[data-line="${Number(line.dataset.line)}"]`)];
    const button = element("button", { type: "button", "aria-pressed": "true" }, name);
    button.style.borderLeftColor = path.style.stroke;
    const point = (on) => {
      named.textContent = on ? name : "\u00a0";
      for (const other of drawn) other.classList.toggle("dim", on && other !== line);
    };
    const wide = path.cloneNode(); // a line is thin, the pointer is not
    wide.removeAttribute("clip-path");
    wide.setAttribute("style", "fill: none; stroke: transparent; stroke-width: 9");
    line.append(wide);
    for (const target of [...parts, button]) {
      target.addEventListener("pointerenter", () => point(true));
      target.addEventListener("pointerleave", () => point(false));
    }
    button.addEventListener("focus", () => point(true));
    button.addEventListener("blur", () => point(false));
    button.addEventListener("click", () => {
      const shown = button.getAttribute("aria-pressed") === "true";
      button.setAttribute("aria-pressed", String(!shown));
      for (const part of parts) part.style.display = shown ? "none" : "";
    });
    const item = element("li");
    item.append(button);
    list.append(item);
  }
  figure.querySelector("figcaption").before(named, list);
}

for (const section of document.querySelectorAll("section")) {
  const tables = [...section.querySelectorAll("table.plans")];
  tables.forEach(sortable);
  if (tables.length) filter(section, tables);
}
document.querySelectorAll("figure").forEach(lines);
