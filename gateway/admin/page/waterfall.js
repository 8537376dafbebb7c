/** How did the attempts of one request follow each other? A row each on one scale: waiting for the status line, for the first
 *  token, and the answer itself. */
import { h } from "./dom.js";
import { money, ms } from "./format.js";
import { badge } from "./parts.js";

const PHASES = [["wait", "until the status line"], ["think", "until the first token"], ["flow", "answering"]];

/** `attempts` as the API tells them; `total_ms`: the length of the scale. */
export function waterfall(attempts, total_ms) {
  const scale = Math.max(total_ms, 1, ...attempts.map((attempt) => attempt.end_ms ?? total_ms));
  return h("div", { class: "waterfall" },
    h("div", { class: "legend" }, PHASES.map(([tone, label]) => h("span", null, h("i", { class: tone }), label)), h("span", null, h("i", { class: "lost" }), "failed")),
    h("ol", null, attempts.map((attempt, place) => row(attempt, place, scale))),
    h("div", { class: "scale", "aria-hidden": "true" }, [0, 0.25, 0.5, 0.75, 1].map((share) => h("span", null, ms(scale * share)))));
}

function row(attempt, place, scale) {
  const end = attempt.end_ms ?? scale;
  const marks = [attempt.start_ms, attempt.headers_ms ?? end, attempt.first_token_ms ?? end, end];
  const spans = PHASES.map(([tone], at) => ({ tone, from: Math.min(marks[at], end), to: Math.min(marks[at + 1], end) }))
    .filter(({ from, to }) => to > from);
  const outcome = attempt.error || (attempt.end_ms === null ? "running" : "ok");
  return h("li", { key: `attempt-${place}` },
    h("div", { class: "attempt-name" }, h("strong", null, attempt.target), h("span", { class: "muted" }, typeof attempt.key === "number" ? ` key ${attempt.key}` : ` ${attempt.key}`)),
    h("div", { class: "attempt-bar", role: "img", "aria-label":
      `${attempt.target}: from ${ms(attempt.start_ms)} to ${ms(attempt.end_ms)}, ${outcome}` },
      spans.map(({ tone, from, to }) => h("i", { class: attempt.error ? "lost " + tone : tone, style: {
        left: `${(from / scale) * 100}%`, width: `${Math.max(((to - from) / scale) * 100, 0.4)}%` } }))),
    h("div", { class: "attempt-end" },
      badge(outcome, attempt.error ? "bad" : attempt.end_ms === null ? "info" : "good"),
      attempt.status ? h("span", { class: "muted" }, String(attempt.status)) : null,
      h("span", { class: "num" }, ms(end - attempt.start_ms)),
      attempt.cost_usd ? h("span", { class: "muted" }, money(attempt.cost_usd)) : null),
    attempt.message ? h("div", { class: "attempt-said" }, attempt.message) : null);
}
