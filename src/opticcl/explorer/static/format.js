// Numbers as text.

const scaled = (value, steps, unit, digits) => {
  for (const [factor, prefix] of steps) if (Math.abs(value) >= factor) return `${short(value / factor, digits)} ${prefix}${unit}`;
  const [factor, prefix] = steps.at(-1);
  return `${short(value / factor, digits)} ${prefix}${unit}`;
};
const LARGE = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
const SMALL = [[1, ""], [1e-3, "m"], [1e-6, "u"], [1e-9, "n"], [1e-12, "p"]];

/** A number with four significant digits. */
export const short = (value, digits = 4) => Number.isFinite(value) ? String(Number(value.toPrecision(digits))) : "-";

/** A time [s] such as "5.775 us". */
export const seconds = (value, digits = 4) => value === 0 ? "0 s" : scaled(value, SMALL, "s", digits);

/** A size [bytes] such as "100 MB". */
export const bytes = (value, digits = 4) => scaled(value, LARGE, "B", digits).replace("kB", "KB");

/** A factor with three digits. */
export const ratio = (factor) => `${factor < 9.995 ? factor.toFixed(2) : factor < 99.95 ? factor.toFixed(1) : count(Math.round(factor))}x`;

/** The margin of the light of a plan, and whether it closes; "-" where no light goes from end to end. */
export const light = (row) => row.light_margin_db === null ? "-" : `${row.light_closes ? "closes" : "NO"} ${row.light_margin_db >= 0 ? "+" : ""}${row.light_margin_db.toFixed(1)} dB`;

/** A rate [bit/s]. */
export const rate = (value) => scaled(value, LARGE, "b/s", 4);

/** A count or amount with separators. */
export const count = (value) => Number.isFinite(value) ? value.toLocaleString("en", { maximumFractionDigits: 2 }) : "-";

/** Text of a value by the name of its field, whose end is the unit. */
export function value(name, given) {
  if (given === null || given === undefined) return "-";
  if (typeof given === "boolean") return given ? "yes" : "no";
  if (typeof given === "string") return given;
  if (Array.isArray(given)) return [...new Set(given.map((one) => value(name, one)))].join(" to ");
  if (name.endsWith("bits_per_s") || name === "node_rate") return rate(given);
  if (name.endsWith("bytes_per_s")) return `${bytes(given)}/s`;
  if (name.endsWith("_bytes")) return bytes(given);
  if (name.endsWith("_s")) return seconds(given);
  if (name.endsWith("_db")) return `${short(given, 3)} dB`;
  if (name.endsWith("_dbm")) return `${short(given, 3)} dBm`;
  if (name.endsWith("usd")) return `$${count(Math.round(given))}`;
  if (name.endsWith("_w") || name === "w") return `${count(given)} W`;
  if (name.endsWith("utilisation") || name.endsWith("share")) return `${short(100 * given, 3)} %`;
  if (Number.isInteger(given)) return count(given);
  return Math.abs(given) >= 1000 ? count(Number(short(given))) : short(given);
}

/** Name of a field in words, without its unit. */
export const words = (name) => name.replace(/_bytes_per_s$/, "_bandwidth").replace(/_(bits_per_s|bytes|s|dbm|db|usd|w)$/, "").replace(/^num_/, "").replace(/\busd(?=_|$)/, "USD").replace(/^w_per/, "W_per").replaceAll("_", " ");
