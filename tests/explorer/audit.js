// Faults of accessibility on the page, in words: names of controls, ids, headings, landmarks, contrast of texts.
() => {
  const faults = [];
  const visible = (one) => one.checkVisibility() && one.getClientRects().length > 0;
  const name = (one) => (one.getAttribute("aria-label") || [...(one.labels ?? [])].map((label) => label.textContent).join(" ") || one.textContent || one.title || "").trim();
  for (const one of document.querySelectorAll("button, a[href], input, select, summary, [tabindex='0']")) {
    if (visible(one) && !name(one) && one.tagName !== "TR") faults.push(`no name: ${one.outerHTML.slice(0, 90)}`);
  }
  for (const one of document.querySelectorAll("svg, canvas")) {
    if (visible(one) && !one.closest("[aria-hidden=true]") && !one.getAttribute("aria-label")) faults.push(`picture without a label: ${one.outerHTML.slice(0, 60)}`);
  }
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  for (const id of new Set(ids)) if (ids.filter((other) => other === id).length > 1) faults.push(`id twice: ${id}`);
  if (document.querySelectorAll("main, nav, header, footer, h1").length !== 5) faults.push("landmarks");
  if (!document.documentElement.lang) faults.push("no language");
  for (const one of document.querySelectorAll("ul > *, ol > *")) if (one.tagName !== "LI") faults.push(`in a list: ${one.tagName}`);
  for (const one of document.querySelectorAll("table")) if (visible(one) && !one.querySelector("th")) faults.push("table without heads");

  for (const one of document.querySelectorAll("main *")) {
    const scrolls = one.scrollHeight > one.clientHeight + 2 && /auto|scroll/.test(getComputedStyle(one).overflowY);
    const wide = one.scrollWidth > one.clientWidth + 2 && /auto|scroll/.test(getComputedStyle(one).overflowX);
    if ((scrolls || wide) && one.tabIndex < 0 && !one.querySelector("a, button, input, select, [tabindex='0']")) faults.push(`scrolls, not by keyboard: ${one.className}`);
  }

  const numbers = (text) => (text.match(/[\d.]+/g) ?? []).map(Number);
  const bright = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const colour = numbers(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] > 0.5) return colour;
    }
    return [255, 255, 255];
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const one = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !visible(one) || one.closest(".bars, .skip, option, title, :disabled")) continue;
    const style = getComputedStyle(one);
    const [a, b] = [bright(numbers(one.closest("svg") ? style.fill : style.color)), bright(behind(one))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) faults.push(`contrast ${contrast.toFixed(2)}: ${walker.currentNode.textContent.trim().slice(0, 40)}`);
  }
  return [...new Set(faults)];
}
