// State of the page in its address: #view?name=value&name=value. Links to it show the same view with the same parameters.

/** View and parameters of the address; a name that occurs several times has a list of values. */
export function read() {
  const [view, query = ""] = decodeURI(location.hash.slice(1)).split("?");
  const parameters = {};
  for (const [name, text] of new URLSearchParams(location.hash.split("?")[1] ?? query)) {
    if (name in parameters) parameters[name] = [parameters[name], text].flat();
    else parameters[name] = text;
  }
  return { view, parameters };
}

/** Address of a view. */
export function href(view, parameters) {
  const pairs = Object.entries(parameters).flatMap(([name, given]) => [given].flat().map((text) => [name, text]));
  const query = new URLSearchParams(pairs.filter(([, text]) => text !== "" && text !== null && text !== undefined));
  return `#${view}?${query}`;
}

/** Change the address; without `replace`, the browser can go back. */
export function write(view, parameters, { replace = false } = {}) {
  const target = href(view, parameters);
  if (target === location.hash) return;
  if (replace) history.replaceState(null, "", target);
  else location.hash = target;
}

/** All values of a parameter. */
export const list = (given) => given === undefined || given === "" ? [] : [given].flat();

/** Options of a table whose sort column, hidden columns and filter are parameters; `hidden` are hidden unless they say otherwise. */
export const ofTable = (parameters, update, hidden = []) => ({
  sort: parameters.sort ?? "", filter: parameters.filter ?? "", hidden: "hide" in parameters ? list(parameters.hide) : hidden,
  changed: ({ sort, hidden: hide, filter }) => update({ sort, filter, hide: String(hide.toSorted()) === String(hidden.toSorted()) ? undefined : hide.length ? hide : ["-"] }, { quiet: true }),
});
