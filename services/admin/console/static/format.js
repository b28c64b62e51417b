/** Numbers, sizes and times as people read them. */

const NUMBERS = new Intl.NumberFormat("en", { useGrouping: true, maximumFractionDigits: 1 });
const UNITS = ["bytes", "kB", "MB", "GB", "TB", "PB"];

/** A number of the API, where 64-bit ones are text, and those that are not set are missing. */
export function num(value) {
  return Number(value ?? 0);
}

/** 1234567 → 1,234,567; a dash for what nobody could say */
export function count(value) {
  if (value === undefined) return "–";
  return NUMBERS.format(num(value));
}

/** 1500 → 1.5 kB: powers of 1,000, as the command line has them */
export function bytes(value) {
  if (value === undefined) return "–";
  let size = num(value);
  let unit = 0;
  while (Math.abs(size) >= (unit ? 999.95 : 1000) && unit < UNITS.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${size.toFixed(unit && size < 100 ? 1 : 0)} ${UNITS[unit]}`;
}

/** Milliseconds as the two units that matter: 93784000 → 1 d 2 h */
export function duration(ms) {
  const seconds = num(ms) / 1000;
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const steps = [["d", 86_400], ["h", 3_600], ["min", 60], ["s", 1]];
  const first = steps.findIndex(([, size]) => seconds >= size);
  const parts = [];
  let rest = seconds;
  for (const [name, size] of steps.slice(first, first + 2)) {
    const whole = Math.floor(rest / size);
    rest -= whole * size;
    if (whole) parts.push(`${whole} ${name}`);
  }
  return parts.join(" ");
}

function two(number, width = 2) {
  return String(number).padStart(width, "0");
}

/** A moment in the browser's time zone: 2026-11-21 21:54:03.125; a dash for none. */
export function time(ms, fraction = false) {
  if (!num(ms)) return "–";
  const at = new Date(num(ms));
  if (Number.isNaN(at.getTime())) return "–";
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  const clock = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  return `${day} ${clock}${fraction ? `.${two(at.getMilliseconds(), 3)}` : ""}`;
}

/** How long ago a moment was. */
export function ago(ms) {
  return num(ms) ? `${duration(Math.max(0, Date.now() - num(ms)))} ago` : "–";
}

/** What an <input type=datetime-local> wants of a moment. */
export function toInput(ms) {
  return time(ms).replace(" ", "T");
}

/** The moment that such an input says; 0 for none. */
export function fromInput(text) {
  const ms = text ? new Date(text).getTime() : 0;
  return Number.isNaN(ms) ? 0 : ms;
}

/** SOME_NAME of the API in words: some name */
export function words(name) {
  return String(name ?? "").toLowerCase().replaceAll("_", " ");
}
