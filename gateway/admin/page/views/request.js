/** What became of one request? */
import { get } from "../api.js";
import { h } from "../dom.js";
import { count, moment, money, ms } from "../format.js";
import { badge, card, empty, figure, link, table } from "../parts.js";
import { waterfall } from "../waterfall.js";

export default {
  title: "Request",
  within: "requests",
  load: (c) => get(`/requests/${encodeURIComponent(c.params[0] || "")}`),
  heading: ({ request }) => request.asked || "Request",
  tools: () => link("requests", "All requests"),
  render({ request: r, attempts, artifacts }) {
    return h("div", { class: "stack" },
      h("div", { class: "figures" },
        figure("Outcome", badge(r.outcome), r.error || `status ${r.status}`),
        figure("Whole answer", ms(r.latency_ms), `${ms(r.overhead_ms)} of it ours`),
        figure("First token", ms(r.ttft_ms), r.stream ? "streamed" : "not streamed"),
        figure("Tokens", `${count(r.input)} / ${count(r.output)}`, r.estimated ? "our own count" : "in / out"),
        figure("Cost", money(r.cost_usd), r.cost_usd === null ? "the price is unknown" : "of all attempts"),
        figure("Tries", count(r.attempts), r.routed ? `answered by ${r.routed}` : "nobody answered")),
      r.message ? h("div", { class: "problem" }, r.message) : null,
      card("Attempts", attempts.length ? waterfall(attempts.map(drawn), r.latency_ms)
        : empty("Nobody was asked.", r.outcome === "refused" ? "The request was refused before any target was tried." : "The attempts of this request were let go to make room.")),
      card("What is known of it", table([{ head: "", cell: ([name]) => h("span", { class: "muted" }, name) }, { head: "", wrap: true, cell: ([, value]) => value }], facts(r), { label: "Facts" })),
      attempts.length ? card("Tokens of each attempt", table([
        { head: "Target", cell: (a) => `${a.provider}/${a.model}` }, { head: "Key", cell: (a) => a.account || null },
        { head: "In", num: true, cell: (a) => count(a.input) }, { head: "Cached", num: true, cell: (a) => count(a.cached) },
        { head: "Out", num: true, cell: (a) => count(a.output) }, { head: "Thought", num: true, cell: (a) => count(a.reasoning) },
        { head: "Cost", num: true, cell: (a) => money(a.cost_usd) }, { head: "Called itself", cell: (a) => a.upstream_model || null },
        { head: "Its id", cell: (a) => a.upstream_id ? h("code", null, a.upstream_id) : null },
      ], attempts, { key: (a) => a.n, label: "Tokens" })) : null,
      artifacts.length ? card("Bodies that were kept", table([{ head: "Which", cell: (a) => a.kind }, { head: "Bytes", num: true, cell: (a) => count(a.n_bytes) },
        { head: "", cell: (a) => a.cut ? badge("cut", "warn") : null }], artifacts, { label: "Bodies" })) : null);
  },
};

const drawn = (a) => ({ target: `${a.provider}/${a.model}`, key: a.account, start_ms: a.started_ms, end_ms: a.ended_ms, headers_ms: a.headers_ms,
  first_token_ms: a.ttft_ms, status: a.status, error: a.error, message: a.message, cost_usd: a.cost_usd });

const facts = (r) => [["when", moment(r.at)], ["request id", h("code", null, r.request)], ["surface", `${r.surface} (${r.wire})`], ["key", r.key], ["client", r.client],
  ["session", r.session && h("code", null, r.session)], ["order", [r.strategy, r.decision].filter(Boolean).join(": ")], ["finish", r.finish],
  ["cached tokens", r.cached ? count(r.cached) : ""], ["thought tokens", r.reasoning ? count(r.reasoning) : ""],
  ["bytes", `${count(r.bytes_in)} in, ${count(r.bytes_out)} out`]].filter(([, value]) => value);
