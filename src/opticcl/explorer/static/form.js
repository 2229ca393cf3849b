// Forms of questions, and the line on what is being done.

import { h } from "./dom.js";
import { list } from "./state.js";

/**
 * A form. Fields: {name, label, kind: text | select | many, options, value, wide}. `send` receives the parameters.
 */
export function questionForm(fields, parameters, send) {
  const inputs = new Map();
  const elements = fields.map((field) => {
    const given = parameters[field.name] ?? field.value ?? "";
    if (field.kind === "many") return many(field, list(parameters[field.name]), inputs);
    const id = `field-${field.name}`;
    const input = field.kind === "select"
      ? h("select", { id, name: field.name }, field.options.map((one) => h("option", { value: [one].flat()[0] }, [one].flat().at(-1))))
      : h("input", { id, name: field.name, type: "text", class: field.wide && "wide", autocomplete: "off", spellcheck: "false", placeholder: field.placeholder });
    input.value = Array.isArray(given) ? given.join(", ") : given;
    inputs.set(field.name, () => (field.several ? input.value.split(/[,;]\s+|\s+/).filter(Boolean) : input.value.trim()));
    return h("label", { for: id }, field.label, input);
  });
  const submit = (event) => {
    event.preventDefault();
    send(Object.fromEntries([...inputs].map(([name, read]) => [name, read()])));
  };
  return h("form", { class: "question", onsubmit: submit }, elements, h("button", { class: "main", type: "submit" }, "Show"));
}

/** Checkboxes, and a line for values that are written out. */
function many(field, chosen, inputs) {
  const boxes = field.options.map((one) => h("input", { type: "checkbox", value: one, checked: chosen.includes(one) }));
  const other = h("input", { type: "text", class: "wide", placeholder: field.placeholder, spellcheck: "false", "aria-label": `${field.label}, with parameters` });
  other.value = chosen.filter((one) => !field.options.includes(one)).join(" ");
  inputs.set(field.name, () => [...boxes.filter((box) => box.checked).map((box) => box.value), ...other.value.split(/\s+/).filter(Boolean)]);
  const labels = boxes.map((box, i) => h("label", {}, box, field.options[i]));
  const summary = chosen.length ? `${field.label}: ${chosen.join(", ")}` : `${field.label}: ${field.none ?? "all"}`;
  return h("details", { class: "wide" }, h("summary", {}, summary), h("div", { class: "choices" }, labels), other);
}

/** A line on what is being done, with a button that cancels it. */
export function stateLine(cancel) {
  const text = h("span");
  const button = h("button", { type: "button", onclick: cancel, hidden: true }, "Cancel");
  const line = h("p", { class: "state", role: "status" }, text, " ", button);
  const show = (content, { bad = false, busy = false } = {}) => {
    text.replaceChildren(busy ? h("progress", { "aria-label": "working" }) : "", " ", content);
    text.className = bad ? "bad" : "quiet";
    button.hidden = !busy;
  };
  return { line, busy: (content) => show(content, { busy: true }), bad: (content) => show(content, { bad: true }), quiet: (content) => show(content) };
}
