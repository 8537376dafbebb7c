/** What do the pages consist of? Cards, tables, badges, fields, empty states: each once, so that all pages look alike. */
import { h } from "./dom.js";
import { count, DASH } from "./format.js";

export const card = (title, ...inside) => h("section", { class: "card" }, title && h("h2", null, title), inside);

/** A card with something at the right of its title. */
export const topped = (title, tools, ...inside) => h("section", { class: "card" },
  h("div", { class: "card-head" }, h("h2", null, title), h("span", { class: "grow" }), tools), inside);

export const figure = (label, value, note, tone = "") => h("div", { class: `figure ${tone}` },
  h("div", { class: "figure-label" }, label), h("div", { class: "figure-value" }, value),
  h("div", { class: "figure-note" }, note || "\u00a0"));

/** What is empty says why, and what to do. */
export const empty = (what, todo, ...more) => h("div", { class: "empty" }, h("strong", null, what), h("p", null, todo), more);

export const problem = (error) => h("div", { class: "problem", role: "alert" }, h("strong", null, "That did not work. "), error.message,
  error.param ? h("code", null, ` ${error.param}`) : null);

const TONES = {
  ok: "good", good: "good", closed: "good", active: "good", yes: "good",
  "partly resting": "warn", degraded: "warn", "half-open": "warn", resting: "warn", client_gone: "idle", refused: "warn", untested: "idle",
  open: "bad", failed: "bad", broken: "bad", bad: "bad", unreachable: "bad", revoked: "idle", expired: "warn", running: "info",
};
const WORDS = { client_gone: "client left", ok: "ok" };

export const badge = (word, tone = TONES[word] || "idle") => h("span", { class: `badge ${tone}` },
  h("span", { class: "dot", "aria-hidden": "true" }), WORDS[word] || word);

/** `columns`: [{head, cell: row -> child, num, grow}]. Rows have `key` for identity; `open(row)` makes them clickable. */
export function table(columns, rows, { key, open, label } = {}) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label || "table" }, h("table", null,
    columns.some((column) => column.head) && h("thead", null, h("tr", null, columns.map((column) => h("th", { class: column.num ? "num" : "", scope: "col" }, column.head)))),
    h("tbody", null, rows.map((row) => h("tr", {
      key: key ? String(key(row)) : undefined, class: open ? "link" : "",
      onclick: open ? (event) => { if (!event.target.closest("a,button,input,select,summary")) open(row); } : undefined,
    }, columns.map((column) => h("td", { class: `${column.num ? "num" : ""} ${column.wrap ? "wrap" : ""}` }, column.cell(row) ?? (column.head ? DASH : ""))))))));
}

let fields = 0;

/** A label with its field, which is made by `make(id)`. */
export function field(label, control, note) {
  const id = control.id || `field-${++fields % 10_000}`;
  if (!control.id) control.id = id;
  return h("div", { class: "field" }, h("label", { for: control.id }, label), control, note && h("small", null, note));
}

export const input = (id, props) => h("input", { id, autocomplete: "off", spellcheck: "false", ...props });

export const choice = (id, options, props) => h("select", { id, ...props },
  options.map((option) => Array.isArray(option) ? h("option", { value: option[0] }, option[1]) : h("option", { value: option }, option)));

export const tick = (id, label, checked, onchange) => h("label", { class: "tick", for: id },
  h("input", { id, type: "checkbox", checked, onchange }), label);

export const button = (label, onclick, kind = "", props = {}) => h("button", { type: "button", class: kind, onclick, ...props }, label);

/** Buttons of which one is pressed. */
export const switcher = (label, options, chosen, choose) => h("div", { class: "switcher", role: "group", "aria-label": label },
  options.map(([value, text]) => h("button", { type: "button", "aria-pressed": String(value === chosen), onclick: () => choose(value) }, text)));

/** A minute each; grey where nothing happened. */
export function strip(told, label) {
  const minutes = told.length ? told : Array.from({ length: 60 }, () => [0, 0]);
  const width = 4;
  const marks = [];
  minutes.forEach(([good, bad], place) => {
    if (!good && !bad) return;
    const tone = !bad ? "good" : !good ? "bad" : "mixed";
    marks.push(h("rect", { x: place * width, y: 1, width: width - 1, height: 16, rx: 1, class: tone }));
  });
  const good = minutes.reduce((sum, [n]) => sum + n, 0), bad = minutes.reduce((sum, [, n]) => sum + n, 0);
  const said = good + bad ? `${label}: ${good} answers and ${bad} failures in the last ${minutes.length} minutes`
    : `${label}: nothing in the last ${minutes.length} minutes`;
  return h("svg", { class: "strip", viewBox: `0 0 ${minutes.length * width} 18`, role: "img", "aria-label": said, preserveAspectRatio: "none" },
    h("rect", { x: 0, y: 7.5, width: minutes.length * width, height: 3, rx: 1.5, class: "none" }), marks);
}

export const bar = (share, tone = "") => h("span", { class: `bar ${tone}`, role: "presentation" },
  h("span", { style: { width: `${Math.max(0, Math.min(1, share)) * 100}%` } }));

/** Ask before something that cannot be undone. */
export function confirm(question, detail, word = "Go on") {
  return new Promise((resolve) => {
    const close = (answer) => { dialog.close(); dialog.remove(); resolve(answer); };
    const dialog = h("dialog", { oncancel: () => close(false), "aria-label": question }, h("h2", null, question), h("p", null, detail),
      h("div", { class: "row end" }, button("Cancel", () => close(false)), button(word, () => close(true), "primary")));
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** Shown once, like a new key. */
export function reveal(title, detail, secret) {
  const close = () => { dialog.close(); dialog.remove(); };
  const shown = h("code", { class: "secret", tabindex: "0" }, secret);
  const copied = h("span", { class: "muted", role: "status" });
  const dialog = h("dialog", { oncancel: close, "aria-label": title }, h("h2", null, title), h("p", null, detail), shown,
    h("div", { class: "row end" }, copied, button("Copy", async () => {
      try { await navigator.clipboard.writeText(secret); copied.textContent = "Copied."; } catch { getSelection().selectAllChildren(shown); }
    }), button("Close", close, "primary")));
  document.body.append(dialog);
  dialog.showModal();
}

/** A short word at the bottom that goes by itself. */
export function toast(text, tone = "good") {
  document.querySelectorAll(".toast").forEach((old) => old.remove());
  const shown = h("div", { class: `toast ${tone}`, role: "status" }, text);
  document.body.append(shown);
  setTimeout(() => shown.remove(), 4_000);
}

export const plural = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;

export const link = (to, ...inside) => h("a", { href: `#/${to}` }, inside);
