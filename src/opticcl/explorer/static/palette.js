// Colours of wavelengths: distinct while they are few, neighbours far apart on the circle of hues when they are many.
// Red is left out: it marks what carries more than it can.

const FEW = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#8a7a00", "#56b4e9", "#7a6fd0", "#5f6b2d"];
const MOST = 60;

/** Index of the colour of a wavelength. */
export const colourIndex = (wavelength, count) => wavelength % (count <= FEW.length ? FEW.length : MOST);

/** Colour by its index. */
export const colourOf = (index, count, dark) => (count <= FEW.length ? FEW[index] : `hsl(${30 + ((index * 137.5) % 300)} 70% ${dark ? 62 : 40}%)`);

/** Black or white, whichever is easier to read on a colour such as "#0072b2". */
export function inkOn(colour) {
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16) / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000" : "#fff";
}

/** Colour of a variable of the style sheet. */
export const ofTheme = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Whether the dark theme is shown. */
export function isDark() {
  const theme = document.documentElement.dataset.theme;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}
