/** How is the gateway doing? */
import { get } from "../api.js";
import { chart } from "../chart.js";
import { h } from "../dom.js";
import { count, money, ms, percent, seconds } from "../format.js";
import { badge, bar, card, empty, figure, link, strip, switcher, table } from "../parts.js";

const SPANS = [[15, "15 min"], [60, "1 h"], [180, "3 h"], [360, "6 h"]];
const minutes = (c) => c.state.minutes || 60;

export default {
  title: "Overview",
  every_s: 5,
  async load(c) {
    const [overview, providers] = await Promise.all([get("/overview", { minutes: minutes(c) }, c), get("/providers", {}, c)]);
    return { overview, providers };
  },
  tools: (data, c) => switcher("Time", SPANS, minutes(c), (value) => c.set({ minutes: value }, true)),
  render({ overview: o, providers }) {
    return h("div", { class: "stack" },
      figures(o),
      o.draining ? h("div", { class: "problem" }, "The gateway is stopping: it finishes what is under way and takes nothing new.") : null,
      o.store_reachable ? null : h("div", { class: "problem" }, "The store cannot be written; records wait in memory. The log says why."),
      o.requests ? charts(o) : quiet(o),
      h("div", { class: "columns" }, top(o), failures(o)),
      health(providers));
  },
};

function figures(o) {
  const share = o.success;
  return h("div", { class: "figures" },
    figure("Requests", count(o.requests), `${count(o.requests_per_minute)} a minute`),
    figure("Success", percent(share), `${count((o.outcomes.failed || 0) + (o.outcomes.broken || 0))} failed`,
      share === null || share >= 0.99 ? "" : share >= 0.95 ? "warn" : "bad"),
    figure("Moved on", count(o.failovers), `of ${count(o.attempts)} attempts`),
    figure("First token", ms(o.ttft.p50), `p95 ${ms(o.ttft.p95)}`),
    figure("Whole answer", ms(o.latency.p50), `p95 ${ms(o.latency.p95)}`),
    figure("Tokens", count(o.input_tokens + o.output_tokens), `${count(o.output_tokens)} out, ${count(o.cached_tokens)} cached`),
    figure("Cost", money(o.cost_usd), "where prices are known"),
    figure("Under way", count(o.in_flight), `up ${seconds(o.uptime_s)}`));
}

function charts(o) {
  const { curves: { at, ...curves } } = o;
  const line = (name, values, colour, more) => ({ name, values: curves[values], colour, ...more });
  const spec = (id, label, shown, ...lines) => chart({ id, label, at, shown, lines, whole: shown === count });
  return h("div", { class: "charts" },
    spec("traffic", curves.step_s === 60 ? "Requests a minute" : `Requests in ${seconds(curves.step_s)}`, count, line("requests", "requests", "--line-1", { fill: true, bars: true }), line("failed", "failed", "--line-4", { bars: true, fill: true })),
    spec("latency", "Whole answer", ms, line("p50", "p50_ms", "--line-1"), line("p95", "p95_ms", "--line-2")),
    spec("ttft", "Time to first token", ms, line("p50", "ttft_p50_ms", "--line-1"), line("p95", "ttft_p95_ms", "--line-2")),
    spec("failovers", "Attempts that moved on", count, line("moved on", "failovers", "--line-2", { fill: true, bars: true })),
    spec("tokens", "Tokens", count, line("in", "input_tokens", "--line-3", { fill: true }), line("out", "output_tokens", "--line-1", { fill: true })),
    spec("cost", "Cost", money, line("cost", "cost_usd", "--line-1", { fill: true })));
}

function quiet(o) {
  const where = `${location.origin}/v1`;
  return empty(o.total_requests ? "No requests in this time." : "No requests yet.",
    o.providers ? `Point a client at ${where}, or try one in the playground.` : "No provider is configured: add one below [[providers]] in gateway.toml.",
    link("playground", "Open the playground"));
}

function top(o) {
  const most = Math.max(1, ...o.top.map((row) => row.requests));
  return card("Who answered", o.top.length ? table([
    { head: "Target", cell: (row) => row.target },
    { head: "", cell: (row) => bar(row.requests / most) },
    { head: "Requests", num: true, cell: (row) => count(row.requests) },
    { head: "Failed", num: true, cell: (row) => row.failed ? h("span", { class: "badge bad" }, count(row.failed)) : "0" },
    { head: "Tokens", num: true, cell: (row) => count(row.input_tokens + row.output_tokens) },
    { head: "Cost", num: true, cell: (row) => money(row.cost_usd) },
  ], o.top, { key: (row) => row.target, label: "Targets by requests" }) : empty("Nobody yet.", "Targets appear with their first answer."));
}

function failures(o) {
  const rows = Object.entries(o.errors).sort(([, a], [, b]) => b - a);
  const most = Math.max(1, ...rows.map(([, n]) => n));
  return card("Why attempts failed", rows.length ? table([
    { head: "Kind", cell: ([kind]) => badge(kind, "bad") },
    { head: "", cell: ([, n]) => bar(n / most, "bad") },
    { head: "Attempts", num: true, cell: ([, n]) => count(n) },
  ], rows, { key: ([kind]) => kind, label: "Failures by kind" }) : empty("No failure.", "Attempts that fail are told here by kind, also those that another target made good."));
}

function health({ providers }) {
  return card("Providers in the last hour", providers.length ? table([
    { head: "Provider", cell: (row) => link(`provider/${encodeURIComponent(row.id)}`, row.id) },
    { head: "State", cell: (row) => badge(row.state) },
    { head: "Each minute", cell: (row) => strip(row.strip, row.id) },
    { head: "First token", num: true, cell: (row) => ms(row.measured.ttft_ms) },
    { head: "Success", num: true, cell: (row) => percent(row.measured.success) },
  ], providers.slice(0, 30), { key: (row) => row.id, label: "Provider health" }) : empty("No provider.", "Add one below [[providers]] in gateway.toml; `gateway providers` lists three hundred."));
}
