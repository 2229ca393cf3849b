// The page: views, their links, the theme, and the line with the command that gives the same answer.

import { start } from "./api.js";
import * as budget from "./budget.js";
import * as compare from "./compare.js";
import { h } from "./dom.js";
import { stateLine } from "./form.js";
import * as light from "./light.js";
import { href, read, write } from "./state.js";
import * as study from "./study.js";
import * as time from "./time.js";
import * as train from "./train.js";

const VIEWS = { compare, light, time, budget, train, study };
const nav = document.getElementById("nav"), main = document.getElementById("view"), command = document.getElementById("command");
const QUIET_MS = 150;
let about = null, ended = new AbortController(), shown = "";

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // its address would be that of a view
  main.focus();
});

/** What the focus is on within the view, such that it can be found again once the view is made anew. */
function focused() {
  const one = document.activeElement;
  return main.contains(one) ? { tag: one.tagName, id: one.id, text: one.textContent } : null;
}

/** Put the focus on the same field or button as before, or else on the view. */
function refocus(before) {
  if (!before || (document.activeElement ?? document.body) !== document.body) return;
  const same = [...main.querySelectorAll(before.tag)].find((one) => one.id === before.id && (one.id || one.textContent === before.text));
  (same ?? main).focus({ preventScroll: true });
}

/** Links to the views; they stay, so that the focus does. */
function links(name, known) {
  if (!nav.children.length) nav.replaceChildren(...Object.entries(VIEWS).map(([key, one]) => h("a", { "data-view": key }, one.title)));
  for (const link of nav.children) {
    const mine = link.dataset.view === name;
    link.href = href(link.dataset.view, mine ? known : VIEWS[link.dataset.view].defaults);
    if (mine) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
    if (mine) nav.scrollLeft = link.offsetLeft + link.offsetWidth - nav.clientWidth;
  }
}

/** Show the view of the address. */
function show() {
  const { view, parameters } = read();
  const name = view in VIEWS ? view : "compare";
  if (!(view in VIEWS) || !Object.keys(parameters).length) write(name, { ...VIEWS[name].defaults, ...parameters }, { replace: true });
  const known = read().parameters;
  shown = location.hash;
  ended.abort();
  const mine = (ended = new AbortController());
  document.title = `${VIEWS[name].title} - OptiCCL`;
  links(name, known);
  command.replaceChildren();
  const line = stateLine(() => mine.abort());
  // New parameters, which ask again; with `quiet`, changes of what is shown alone, without a step of the history.
  // They are collected: browsers limit how often a page may change its address.
  let changed = {}, timer = 0;
  const flush = () => {
    clearTimeout(timer);
    if (mine !== ended || !Object.keys(changed).length) return;
    write(name, { ...read().parameters, ...changed }, { replace: true });
    shown = location.hash;
    changed = {};
  };
  const update = (next, { quiet = false } = {}) => {
    if (quiet) {
      Object.assign(changed, next);
      clearTimeout(timer);
      timer = setTimeout(flush, QUIET_MS);
      return;
    }
    flush();
    write(name, next);
    if (location.hash === shown) show();
  };
  const run = async (work) => {
    line.busy("asking ...");
    const commands = [];
    const note = (text) => { if (!commands.includes(text)) commands.push(text); showCommands(commands); };
    const tools = { signal: mine.signal, also: note, report: ({ command: text, progress }) => { if (text) note(text); if (progress) line.busy(progress); } };
    try {
      await work(tools);
      line.quiet("");
    } catch (error) {
      if (mine === ended) line.bad(error.name === "AbortError" ? "cancelled" : error.message);
    }
  };
  const before = focused();
  main.replaceChildren();
  VIEWS[name].render(main, { parameters: known, about, line: line.line, state: line, update, run, signal: mine.signal });
  refocus(before);
}

function showCommands(texts) {
  const all = texts.join("\n");
  const copy = h("button", { type: "button", onclick: () => navigator.clipboard?.writeText(all).then(() => { copy.textContent = "Copied"; }) }, "Copy");
  command.replaceChildren(h("span", { class: "quiet" }, "Same answer:"), h("code", { tabindex: 0 }, texts.join("  ;  ")), copy);
}

const theme = document.getElementById("theme");
const THEMES = ["auto", "light", "dark"];
function setTheme(name) {
  localStorage.setItem("theme", name);
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  theme.textContent = `Theme: ${name}`;
  dispatchEvent(new Event("theme"));
}
theme.addEventListener("click", () => setTheme(THEMES[(THEMES.indexOf(localStorage.getItem("theme") ?? "auto") + 1) % 3]));
setTheme(localStorage.getItem("theme") ?? "auto");

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => dispatchEvent(new Event("theme")));
addEventListener("hashchange", show);
try {
  about = await start();
  show();
} catch (error) {
  main.replaceChildren(h("p", { class: "bad", role: "alert" }, error.message));
}
