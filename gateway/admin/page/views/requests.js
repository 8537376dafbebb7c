/** Which requests were there? */
import { get } from "../api.js";
import { h } from "../dom.js";
import { count, moment, money, ms } from "../format.js";
import { badge, button, card, choice, empty, input, link, table } from "../parts.js";

const OUTCOMES = [["", "any outcome"], ["ok", "ok"], ["failed", "failed"], ["broken", "broken after it began"], ["refused", "refused"], ["client_gone", "client left"]];
const FIELDS = [["asked", "asked for"], ["provider", "provider"], ["model", "model"], ["key", "key"], ["client", "client"], ["request", "request id"]];
const wanted = (c) => c.state.wanted || (c.state.wanted = { outcome: "", field: "asked", words: "" });

export default {
  title: "Requests",
  every_s: 5,
  load(c) {
    const { outcome, field, words } = wanted(c);
    return get("/requests", { outcome, [field]: words.trim(), cursor: c.state.cursor || "" }, c);
  },
  tools(data, c) {
    const now = wanted(c), change = (changes) => c.set({ wanted: { ...now, ...changes }, cursor: "", trail: [] }, true);
    return h("form", { class: "row", onsubmit: (event) => { event.preventDefault(); change({ words: event.target.querySelector("input").value }); } },
      choice("requests-outcome", OUTCOMES, { value: now.outcome, "aria-label": "Outcome", style: { width: "auto" }, onchange: (event) => change({ outcome: event.target.value }) }),
      choice("requests-field", FIELDS, { value: now.field, "aria-label": "Filter by", style: { width: "auto" }, onchange: (event) => change({ field: event.target.value }) }),
      input("requests-words", { type: "search", value: now.words, placeholder: "is exactly …", "aria-label": "Value", style: { width: "170px" }, onchange: (event) => change({ words: event.target.value }) }));
  },
  render(data, c) {
    const trail = c.state.trail || [];
    const filtered = wanted(c).outcome || wanted(c).words;
    return card(null, data.requests.length ? table([
      { head: "When", cell: (row) => moment(row.at) },
      { head: "Outcome", cell: (row) => [badge(row.outcome), row.error ? h("span", { class: "muted small" }, ` ${row.error}`) : null] },
      { head: "Asked for", cell: (row) => link(`request/${encodeURIComponent(row.id)}`, row.asked || "–") },
      { head: "Answered by", cell: (row) => row.routed || (row.provider ? h("span", { class: "muted" }, `${row.provider}/${row.model}`) : null) },
      { head: "Tries", num: true, cell: (row) => row.attempts > 1 ? h("span", { class: "badge warn" }, row.attempts) : row.attempts },
      { head: "First", num: true, cell: (row) => ms(row.ttft_ms) },
      { head: "Whole", num: true, cell: (row) => ms(row.latency_ms) },
      { head: "In", num: true, cell: (row) => count(row.input) },
      { head: "Out", num: true, cell: (row) => count(row.output) },
      { head: "Cost", num: true, cell: (row) => money(row.cost_usd) },
      { head: "Key", cell: (row) => row.key || null },
      { head: "Client", cell: (row) => row.client || null },
    ], data.requests, { key: (row) => row.id, open: (row) => c.go(`request/${encodeURIComponent(row.id)}`), label: "Requests" })
      : empty(filtered ? "No request is like that." : "No request was recorded yet.", filtered ? "Values must be met exactly; take the filter away to see all." : "Each one is told here when it ended, with its tokens, its cost and its attempts."),
    h("div", { class: "row" },
      trail.length ? button("Newer", () => c.set({ cursor: trail[trail.length - 1], trail: trail.slice(0, -1) }, true)) : null,
      data.next ? button("Older", () => c.set({ trail: [...trail, c.state.cursor || ""], cursor: data.next }, true)) : null));
  },
};
