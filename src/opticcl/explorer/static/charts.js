// Charts by plotly.js, which the package plotly brings along: zoom, values under the pointer, pictures and values as files.

import { h, swatch } from "./dom.js";
import { ofTheme } from "./palette.js";
import { table } from "./table.js";

// The library would add the style of its maps to the page, which the policy of the page refuses; an element of that name is there.
const STYLE_OF_MAPS = "9f215cf04c5486422605d13261cb87401f4e7763b6296af81e98efbc0130da53";
const ROW = 24; // of a bar [px]
const BESIDE_ROWS = 78; // above and below bars [px]
const PICTURE = { format: "png", scale: 2 };
let loading = null;

/** The library, which is loaded once, when it is first needed. */
function library() {
  loading ??= new Promise((done, failed) => {
    document.head.append(h("meta", { id: STYLE_OF_MAPS }), h("script", {
      src: "static/plotly.min.js", onload: () => done(window.Plotly), onerror: () => failed(new Error("charts: the server does not send plotly.js")),
    }));
  });
  return loading;
}

/** A text for a chart, whose library reads tags and entities. */
export const plain = (text) => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;");

/** Values as a file that spreadsheets read: a quoted text where a comma or a quote is in it. */
export function csv(rows, columns) {
  const cell = (given) => {
    const text = String(given ?? "");
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [columns.map((one) => one.name), ...rows.map((row) => columns.map((one) => row[one.name]))].map((row) => row.map(cell).join(",")).join("\n") + "\n";
}

/** Give the user a file. */
export function save(name, content) {
  const address = URL.createObjectURL(content);
  h("a", { href: address, download: name }).click();
  URL.revokeObjectURL(address);
}

/** Give the user values as a file. */
export const saveTable = (name, rows, columns) => save(`${name}.csv`, new Blob([csv(rows, columns)], { type: "text/csv" }));

const MARGIN = { l: 8, r: 16, t: 34, b: 8 };

/** Layout with what all charts have in common; colours are those of the theme. `text` of the x axis writes its values. */
function dressed(layout, zoomed) {
  const [ink, muted, faint] = ["--ink", "--muted", "--faint"].map(ofTheme);
  const size = parseFloat(getComputedStyle(document.documentElement).fontSize) * 0.8;
  const axis = (given) => ({ automargin: true, gridcolor: faint, linecolor: muted, zeroline: false, tickcolor: muted, ...given });
  const { text, most, ...across } = layout.xaxis;
  if (text) Object.assign(across, marksAt(roundValues(...(zoomed ?? across.range ?? [0, most])), text));
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", margin: MARGIN, showlegend: false, hovermode: "closest", bargap: 0.28,
    modebar: { bgcolor: "rgba(0,0,0,0)", color: muted, activecolor: ink },
    hoverlabel: { bgcolor: ofTheme("--paper"), bordercolor: muted, font: { color: ink, size } },
    ...layout, font: { family: "system-ui, sans-serif", size, color: ink }, xaxis: axis(across), yaxis: axis(layout.yaxis),
  };
}

/**
 * A chart and its values as a folded table. `draw()` returns {traces, layout}; it is called again when the theme changes, and by
 * `redraw` of the element. `rows` and `columns` are those of the table and of the file; `moved` receives the interval of a zoom, null for
 * all, and redraws.
 */
export function chart(draw, { label, name, rows, columns, caption, moved }) {
  const area = h("div", { class: "chart", role: "group", "aria-label": label });
  const values = h("details", {}, h("summary", {}, "As a table"), table(rows, columns, { caption: label }));
  const figure = h("figure", {}, area, caption ? h("figcaption", {}, caption) : "", values);
  const buttons = (Plotly) => [["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "autoScale2d"],
    ["toImage", { name: "csv", title: "Download values as CSV", icon: Plotly.Icons.disk, click: () => saveTable(name, rows, columns) }]];
  let drawn = null, zoomed = null;
  const within = (event) => {
    if (event["xaxis.autorange"]) zoomed = null;
    else if (event["xaxis.range[0]"] !== undefined) zoomed = [event["xaxis.range[0]"], event["xaxis.range[1]"]];
    else return;
    if (moved) moved(zoomed);
    else figure.redraw();
  };
  figure.redraw = () => library().then((Plotly) => {
    if (!area.isConnected) return null;
    const { traces, layout } = draw();
    area.style.height = `${layout.height}px`; // the library takes the height of the element when the width of the window changes
    const settings = { responsive: true, displaylogo: false, displayModeBar: true, modeBarButtons: buttons(Plotly), toImageButtonOptions: { ...PICTURE, filename: name } };
    return Plotly.react(area, traces, dressed({ uirevision: "kept", ...layout }, moved ? null : zoomed), settings);
  }).then((made) => {
    if (made && !drawn) made.on("plotly_relayout", within);
    drawn ??= made;
    // Readers who cannot see a chart have its label and its table.
    for (const svg of document.querySelectorAll(".chart svg, #js-plotly-tester")) svg.setAttribute("aria-hidden", "true");
  }).catch((error) => area.replaceChildren(h("p", { class: "bad", role: "alert" }, error.message)));
  const again = () => (area.isConnected ? figure.redraw() : removeEventListener("theme", again));
  addEventListener("theme", again);
  queueMicrotask(figure.redraw);
  return figure;
}

/** Axis of rows that are named, the first on top. */
export const rowsAxis = (names) => ({
  tickvals: names.map((_, i) => i), ticktext: names.map((name) => plain(name.length > 34 ? `${name.slice(0, 33)}…` : name)), range: [names.length - 0.5, -0.5], showgrid: false, fixedrange: true,
});

/** A logarithmic axis: marks at powers of ten, and at 2 and 5 between them where these are few. `text` writes a value. */
export function logAxis(values, text, title) {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const [low, high] = [Math.log10(least), Math.log10(most)];
  const powers = Array.from({ length: Math.ceil(high) - Math.floor(low) + 1 }, (_, i) => 10 ** (Math.floor(low) + i));
  const decades = high - low > 2 ? powers : powers.flatMap((power) => [power, 2 * power, 5 * power]);
  const tickvals = decades.filter((one) => least <= one && one <= most).length > 1 ? decades : roundValues(least, most);
  return { type: "log", title: { text: title }, ...marksAt(tickvals, text) };
}

/** Marks of an axis, as `text` writes them. */
const marksAt = (tickvals, text) => ({ tickvals, ticktext: tickvals.map((one) => text(one)) });

/** Some round values of an interval, at equal distances. */
function roundValues(least, most) {
  const size = (most - least || least) / 5;
  const power = 10 ** Math.floor(Math.log10(size));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= size);
  const first = Math.ceil(least / step);
  return Array.from({ length: Math.max(1, Math.floor(most / step) - first + 1) }, (_, i) => (first + i) * step);
}

/** Height of a chart of so many rows [px]. */
export const heightOf = (rows) => rows * ROW + BESIDE_ROWS;

/** A vertical line across all rows of a chart. */
export const rule = (at, dash = "solid") => ({ type: "line", x0: at, x1: at, y0: 0, y1: 1, yref: "paper", line: { color: ofTheme("--ink"), width: 2, dash } });

/**
 * Bars. Rows: {name, parts: {part: value}, mark}; colours by part. `mark` is a value drawn as a line, such as a bound; `text` writes
 * a value with its unit.
 */
export function stackedBars(rows, colours, { label, text, markLabel, file }) {
  const parts = Object.keys(colours).filter((part) => rows.some((row) => row.parts[part]));
  const totals = rows.map((row) => Object.values(row.parts).reduce((a, b) => a + b, 0));
  const places = rows.map((_, i) => i);
  const draw = () => ({
    traces: [
      ...parts.map((part) => ({
        type: "bar", orientation: "h", x: rows.map((row) => row.parts[part]), y: places, marker: { color: colours[part] },
        hovertext: rows.map((row) => plain(`${row.name}, ${part}: ${text(row.parts[part])}`)), hoverinfo: "text",
      })),
      { type: "scatter", mode: "text", x: totals, y: places, text: totals.map((one) => plain(` ${text(one)}`)), textposition: "middle right", hoverinfo: "skip", cliponaxis: false },
      ...(rows.some((row) => row.mark) ? [{
        type: "scatter", mode: "markers", x: rows.map((row) => row.mark), y: places, marker: { symbol: "line-ns", size: 18, line: { width: 2, color: ofTheme("--ink") } },
        hovertext: rows.map((row) => plain(`${row.name}, ${markLabel}: ${text(row.mark ?? 0)}`)), hoverinfo: "text",
      }] : []),
    ],
    layout: {
      barmode: "stack", height: heightOf(rows.length), margin: { ...MARGIN, r: 70 }, xaxis: { rangemode: "tozero", text, most: Math.max(...totals, ...rows.map((row) => row.mark ?? 0)) }, yaxis: rowsAxis(rows.map((row) => row.name)),
    },
  });
  const listed = rows.map((row, i) => ({ name: row.name, ...Object.fromEntries(parts.map((part) => [part, row.parts[part]])), total: totals[i], ...(markLabel && { [markLabel]: row.mark }) }));
  const columns = [{ name: "name" }, ...[...parts, "total", ...(markLabel ? [markLabel] : [])].map((part) => ({ name: part, text: (row) => (row[part] === undefined || row[part] === null ? "-" : text(row[part])) }))];
  const key = h("div", { class: "legend" }, parts.map((part) => h("span", {}, swatch(colours[part]), part)), markLabel ? h("span", {}, "┃ ", markLabel) : null);
  return h("div", {}, key, chart(draw, { label, name: file, rows: listed, columns }));
}
