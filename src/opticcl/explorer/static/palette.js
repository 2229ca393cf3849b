// Colours of wavelengths: distinct while they are few, neighbours far apart on the circle of hues when they are many.
// Red is left out: it marks what carries more than it can.

const FEW = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#8a7a00", "#56b4e9", "#7a6fd0", "#5f6b2d"];
const MOST = 60;

/** Index of the colour of a wavelength. */
export const colourIndex = (wavelength, count) => wavelength % (count <= FEW.length ? FEW.length : MOST);

/** Colour by its index. */
export const colourOf = (index, count, dark) => (count <= FEW.length ? FEW[index] : `hsl(${30 + ((index * 137.5) % 300)} 70% ${dark ? 62 : 40}%)`);

/** Colour of a variable of the style sheet. */
export const ofTheme = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Whether the dark theme is shown. */
export function isDark() {
  const theme = document.documentElement.dataset.theme;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}
