/** How much was it, by whom and when? */
import { get } from "../api.js";
import { chart } from "../chart.js";
import { h } from "../dom.js";
import { count, money, ms, percent } from "../format.js";
import { badge, bar, card, empty, figure, switcher, table } from "../parts.js";

const SPANS = [[24, "24 h"], [168, "7 d"], [720, "30 d"], [2160, "90 d"]];
const BY = [["model", "Models"], ["provider", "Providers"], ["key", "Keys"], ["client", "Clients"]];
const COLOURS = ["--line-1", "--line-2", "--line-3", "--line-4", "--line-5", "--line-6"];
const asked = (c) => ({ by: c.state.by || "model", hours: c.state.hours || 24 });

export default {
  title: "Usage",
  every_s: 30,
  load: (c) => get("/usage", asked(c), c),
  tools: (data, c) => h("div", { class: "row" }, switcher("By", BY, asked(c).by, (by) => c.set({ by }, true)),
    switcher("Time", SPANS, asked(c).hours, (hours) => c.set({ hours }, true))),
  render(data, c) {
    const { total } = data, { by } = asked(c);
    if (!total.requests) return empty("Nothing in this time.", "Sums of tokens, cost and requests are kept by the hour; choose a longer time, or send a request.");
    return h("div", { class: "stack" },
      h("div", { class: "figures" },
        figure("Requests", count(total.requests), `${count(failed(total))} failed, ${count(total.refused)} refused`),
        figure("Tokens in", count(total.input), `${percent(total.input ? total.cached / total.input : null)} cached`),
        figure("Tokens out", count(total.output), `${count(total.reasoning)} thought`),
        figure("Cost", money(total.cost_usd), total.unpriced ? `${count(total.unpriced)} requests of unknown price` : "every price is known"),
        figure("Mean answer", ms(total.latency_ms / total.requests), `${percent(total.latency_ms ? 1 - total.upstream_ms / total.latency_ms : null)} ours`)),
      charts(data, by), rows(data, by), failures(data));
  },
};

/** Requests that somebody could not answer; what was refused was wrong itself, or not let in. */
function failed(row) {
  return row.requests - row.ok - row.gone - row.refused;
}

/** Every step of the time, also those without a row. */
function axis(data) {
  const width = data.step === "hour" ? 3_600 : 86_400;
  const at = [];
  for (let step = data.since; step <= Date.now() / 1_000; step += width) at.push(step);
  return at;
}

function along(at, rows, value) {
  const found = new Map(rows.map((row) => [row.at, value(row)]));
  return at.map((step) => found.get(step) ?? 0);
}

function charts(data, by) {
  const at = axis(data), names = Object.keys(data.largest);
  const split = (id, label, shown, value, whole) => chart({ id: `${id}-${by}`, label, at, shown, whole, lines: names.map((name, place) =>
    ({ name: name || "(none)", values: along(at, data.largest[name], value), colour: COLOURS[place], fill: names.length === 1 })) });
  const timed = (measure, id, label) => {
    const found = new Map(data.timings.filter((row) => row.measure === measure).map((row) => [row.at, row]));
    const line = (name, colour) => ({ name, colour, values: at.map((step) => found.get(step)?.[name] ?? null) });
    return chart({ id, label, at, shown: ms, lines: [line("p50", "--line-1"), line("p95", "--line-2"), line("p99", "--line-4")] });
  };
  return h("div", { class: "charts" }, split("cost", "Cost", money, (row) => row.cost_usd), split("requests", "Requests", count, (row) => row.requests, true),
    split("tokens", "Tokens", count, (row) => row.input + row.output, true),
    chart({ id: "usage-failed", label: "Failed requests", at, shown: count, whole: true, lines: [{ name: "failed", colour: "--line-4", bars: true, fill: true,
      values: along(at, data.over_time, failed) }] }),
    timed("latency", "usage-latency", "Whole answer"), timed("ttft", "usage-ttft", "Time to first token"));
}

function rows(data, by) {
  const most = Math.max(...data.rows.map((row) => row.requests), 1);
  return card(`By ${by}`, table([
    { head: by[0].toUpperCase() + by.slice(1), cell: (row) => row[by] || h("span", { class: "muted" }, "none") },
    { head: "", cell: (row) => bar(row.requests / most) },
    { head: "Requests", num: true, cell: (row) => count(row.requests) },
    { head: "Failed", num: true, cell: (row) => percent(row.requests ? failed(row) / row.requests : null) },
    { head: "Refused", num: true, cell: (row) => percent(row.requests ? row.refused / row.requests : null) },
    { head: "Tries each", num: true, cell: (row) => (row.attempts / row.requests).toFixed(2) },
    { head: "In", num: true, cell: (row) => count(row.input) },
    { head: "Cached", num: true, cell: (row) => percent(row.input ? row.cached / row.input : null) },
    { head: "Out", num: true, cell: (row) => count(row.output) },
    { head: "Mean answer", num: true, cell: (row) => ms(row.latency_ms / row.requests) },
    { head: "Cost", num: true, cell: (row) => row.unpriced === row.requests ? "unknown" : money(row.cost_usd) },
  ], data.rows, { key: (row) => row[by], label: `Usage by ${by}` }));
}

function failures(data) {
  const bad = data.fared.filter((row) => row.error).sort((a, b) => b.attempts - a.attempts);
  return bad.length ? card("Attempts that failed, by provider", table([
    { head: "Provider", cell: (row) => row.provider }, { head: "Kind", cell: (row) => badge(row.error, "bad") },
    { head: "Attempts", num: true, cell: (row) => count(row.attempts) },
    { head: "Cost all the same", num: true, cell: (row) => row.cost_usd ? money(row.cost_usd) : null },
  ], bad, { key: (row) => `${row.provider} ${row.error}`, label: "Failures by provider" })) : null;
}
