/** How are numbers and times written? Short, with their unit, and a dash for what is not known. */

export const DASH = "–";
const known = (value) => value !== null && value !== undefined && !Number.isNaN(value);

export function count(n) {
  if (!known(n)) return DASH;
  if (Math.abs(n) < 10_000) return Number.isInteger(n) ? n.toLocaleString("en") : n.toFixed(n < 10 ? 1 : 0);
  for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (Math.abs(n) >= size) return (n / size).toFixed(n / size < 10 ? 1 : 0) + unit;
  }
  return String(n);
}

export function money(usd) {
  if (!known(usd)) return DASH;
  if (usd === 0) return "$0";
  if (usd < 0.01) return "$" + usd.toPrecision(2);
  return "$" + usd.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
}

export function ms(value) {
  if (!known(value)) return DASH;
  if (value === 0) return "0";
  if (value < 1_000) return `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
  if (value < 60_000) return `${(value / 1_000).toFixed(value < 10_000 ? 2 : 1)} s`;
  return seconds(value / 1_000);
}

export function seconds(s) {
  if (!known(s)) return DASH;
  if (s < 90) return `${Math.round(s)} s`;
  if (s < 5_400) return `${Math.round(s / 60)} min`;
  if (s < 172_800) return `${Math.round(s / 3_600)} h`;
  return `${Math.round(s / 86_400)} d`;
}

export function percent(share) {
  if (!known(share)) return DASH;
  const value = share * 100;
  return value === 100 || value === 0 ? `${value} %` : `${value.toFixed(value > 99 || value < 10 ? 1 : 0)} %`;
}

const two = (n) => String(n).padStart(2, "0");

export function clock(epoch) {
  const at = new Date(epoch * 1_000);
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** The day is left out when it is today. */
export function moment(epoch) {
  if (!known(epoch) || !epoch) return DASH;
  const at = new Date(epoch * 1_000);
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return at.toDateString() === new Date().toDateString() ? clock(epoch) : `${day} ${clock(epoch).slice(0, 5)}`;
}

export function ago(epoch) {
  return known(epoch) && epoch ? `${seconds(Math.max(Date.now() / 1_000 - epoch, 0))} ago` : DASH;
}
