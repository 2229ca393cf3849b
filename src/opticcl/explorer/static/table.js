// A table with sorting, a filter and columns that can be hidden.

import { h, scrolling } from "./dom.js";
import { value, words } from "./format.js";

/**
 * A table of rows. Columns: {name, head, text(row), key(row), number}. Options: the sort column (with "-" for descending),
 * hidden columns, the filter; `changed` receives them when the user changes one, `picked` a row.
 */
export function table(rows, columns, { sort = "", hidden = [], filter = "", changed = () => {}, picked, caption } = {}) {
  const all = columns.map((column) => ({
    head: words(column.name),
    key: (row) => row[column.name],
    text: (row) => value(column.name, row[column.name]),
    ...column,
    number: column.number ?? rows.some((row) => typeof row[column.name] === "number"),
  }));
  const state = { sort, hidden: new Set(hidden), filter };
  const head = h("tr"), body = h("tbody"), counted = h("span", { class: "quiet", role: "status" });
  const search = h("input", { type: "search", placeholder: "Filter rows", "aria-label": "Filter rows", value: filter });
  const boxes = h("div", { class: "choices" });
  search.addEventListener("input", () => update({ filter: search.value }));

  function update(change) {
    Object.assign(state, change);
    changed({ sort: state.sort, hidden: [...state.hidden], filter: state.filter });
    draw();
  }

  function order(name) {
    update({ sort: state.sort === name ? `-${name}` : state.sort === `-${name}` ? "" : name });
  }

  function draw() {
    const shown = all.filter((column) => !state.hidden.has(column.name));
    const focused = document.activeElement?.dataset?.column;
    head.replaceChildren(...shown.map((column) => {
      const direction = state.sort === column.name ? "ascending" : state.sort === `-${column.name}` ? "descending" : "none";
      const arrow = { ascending: " ▲", descending: " ▼", none: "" }[direction];
      const button = h("button", { type: "button", "data-column": column.name, onclick: () => order(column.name) }, column.head + arrow);
      return h("th", { scope: "col", class: column.number && "number", "aria-sort": direction }, button);
    }));
    if (focused) head.querySelector(`[data-column="${CSS.escape(focused)}"]`)?.focus();
    const wanted = state.filter.toLowerCase();
    const kept = rows.filter((row) => !wanted || all.some((column) => String(column.text(row)).toLowerCase().includes(wanted)));
    const column = all.find((one) => one.name === state.sort.replace(/^-/, ""));
    if (column) {
      const sign = state.sort.startsWith("-") ? -1 : 1;
      kept.sort((a, b) => sign * compare(column.key(a), column.key(b)));
    }
    body.replaceChildren(...kept.map((row) => h("tr", picked && { tabindex: 0, onclick: () => picked(row), onkeydown: (e) => e.key === "Enter" && picked(row) },
      shown.map((one) => h("td", { class: one.number && "number" }, one.cell ? one.cell(row) : one.text(row))))));
    counted.textContent = kept.length === rows.length ? `${rows.length} rows` : `${kept.length} of ${rows.length} rows`;
  }

  boxes.append(...all.map((column) => {
    const box = h("input", { type: "checkbox", checked: !state.hidden.has(column.name) });
    box.addEventListener("change", () => {
      if (box.checked) state.hidden.delete(column.name);
      else state.hidden.add(column.name);
      update({});
    });
    return h("label", {}, box, column.head);
  }));
  draw();
  return h("div", {},
    h("div", { class: "tools" }, search, counted, h("details", {}, h("summary", {}, "Columns"), boxes)),
    scrolling(caption ?? "Table", h("table", {}, h("thead", {}, head), body)));
}

/** Order of two values: numbers by size, texts by alphabet, missing ones last. */
function compare(a, b) {
  if (a === b) return 0;
  if (a === null || a === undefined) return 1;
  if (b === null || b === undefined) return -1;
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
}
