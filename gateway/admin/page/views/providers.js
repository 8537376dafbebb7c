/** How well are the providers? */
import { get, post } from "../api.js";
import { h } from "../dom.js";
import { count, ms, percent, seconds } from "../format.js";
import { badge, button, card, empty, input, link, plural, strip, table, toast } from "../parts.js";

export default {
  title: "Providers",
  every_s: 5,
  load: (c) => get("/providers", {}, c),
  tools: (data, c) => input("provider-filter", { type: "search", placeholder: "Filter", "aria-label": "Filter", value: c.state.words || "",
    style: { width: "180px" }, oninput: (event) => c.set({ words: event.target.value }) }),
  render(data, c) {
    const words = (c.state.words || "").toLowerCase();
    const rows = data.providers.filter((row) => `${row.id} ${row.name} ${row.wire} ${row.state}`.toLowerCase().includes(words));
    return h("div", { class: "stack" },
      data.cooldowns.length ? card("Who rests", cooldowns(data.cooldowns, c)) : null,
      card("All, in the order in which they are asked", data.providers.length ? table([
        { head: "Provider", cell: (row) => [link(`provider/${encodeURIComponent(row.id)}`, row.id), row.name !== row.id ? h("div", { class: "muted small" }, row.name) : null] },
        { head: "State", cell: (row) => badge(row.state) },
        { head: "The last hour", cell: (row) => strip(row.strip, row.id) },
        { head: "Success", num: true, cell: (row) => percent(row.measured.success) },
        { head: "First token", num: true, cell: (row) => ms(row.measured.ttft_ms) },
        { head: "Tokens/s", num: true, cell: (row) => count(row.measured.tokens_per_s) },
        { head: "Keys", num: true, cell: (row) => count(row.accounts.length) },
        { head: "Models", num: true, cell: (row) => count(row.models) },
        { head: "Speaks", cell: (row) => h("span", { class: "tag" }, row.wire) },
      ], rows, { key: (row) => row.id, open: (row) => c.go(`provider/${encodeURIComponent(row.id)}`), label: "Providers" })
        : empty("No provider.", "Add one below [[providers]] in gateway.toml; `gateway providers add NAME` prints the lines.")));
  },
};

export function cooldowns(rows, c) {
  return table([
    { head: "Provider", cell: (row) => row.provider },
    { head: "Model", cell: (row) => row.model || h("span", { class: "muted" }, "all") },
    { head: "Key", cell: (row) => row.account || h("span", { class: "muted" }, "all") },
    { head: "Because of", cell: (row) => badge(row.kind, "warn") },
    { head: "Said by", cell: (row) => row.source === "heuristic" ? "our guess" : row.source },
    { head: "For", num: true, cell: (row) => seconds(row.remaining_s) },
    { head: "", num: true, cell: (row) => button("Clear", () => clear(row, c), "small") },
  ], rows, { key: (row) => `${row.provider} ${row.model} ${row.account}`, label: "Cooldowns" });
}

export async function clear({ provider, model, account }, c) {
  try {
    const { ended } = await post("/cooldowns/clear", { provider, model: model || "", account: account === "a former key" ? "" : account || "" });
    toast(`${plural(ended, "cooldown")} ended.`);
  } catch (error) {
    toast(error.message, "bad");
  }
  c.refresh();
}
