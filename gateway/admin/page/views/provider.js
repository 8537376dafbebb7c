/** How well is one provider, and what does it have? */
import { get, post } from "../api.js";
import { h } from "../dom.js";
import { count, money, ms, percent, seconds } from "../format.js";
import { badge, bar, button, card, empty, figure, link, problem, strip, table, toast, topped } from "../parts.js";
import { clear, cooldowns } from "./providers.js";

export default {
  title: "Provider",
  within: "providers",
  every_s: 5,
  load: (c) => get(`/providers/${encodeURIComponent(c.params[0] || "")}`, {}, c),
  heading: ({ provider }) => provider.id,
  tools: ({ provider }, c) => h("div", { class: "row" }, link("providers", "All providers"),
    button(c.state.testing ? "Testing …" : "Test its keys", () => test(provider, c), "", { disabled: c.state.testing }),
    button("Clear all", () => clear({ provider: provider.id }, c))),
  render(data, c) {
    const row = data.provider, { verdicts, refused } = c.state;
    return h("div", { class: "stack" },
      h("div", { class: "figures" },
        figure("State", badge(row.state), row.name),
        figure("Success", percent(row.measured.success), "of recent attempts"),
        figure("First token", ms(row.measured.ttft_ms), `p95 ${ms(row.measured.ttft_p95_ms)}`),
        figure("Speed", count(row.measured.tokens_per_s), "tokens a second"),
        figure("Breaker", badge(row.breaker), row.breaker_s ? `for ${seconds(row.breaker_s)}` : `${count(row.failures)} failures counted`)),
      card("The last hour, minute by minute", strip(row.strip, row.id),
        h("dl", { class: "facts" }, [["address", row.address], ["speaks", row.wire], ["auth", row.auth], ["from the catalogue", row.preset]].map(([name, value]) =>
          value ? h("div", null, h("dt", null, name), h("dd", null, value)) : null))),
      refused ? problem(refused) : null,
      topped("Keys", null, row.accounts.length ? table([
        { head: "Key", cell: (key) => key.label },
        { head: "Priority", num: true, cell: (key) => key.priority },
        { head: "Quota left", cell: (key) => h("span", { class: "row" }, bar(key.headroom, key.headroom < 0.1 ? "bad" : ""), percent(key.headroom)) },
        { head: "State", cell: (key) => key.resting_s ? badge(`rests ${seconds(key.resting_s)}`, "warn") : badge("ok") },
        { head: "Test", cell: (key) => verdict((verdicts || []).find((each) => each.account === key.label)) },
      ], row.accounts, { key: (key) => key.label, label: "Keys" }) : empty("No key.", "Write api_keys into this provider's table.")),
      data.cooldowns.length ? card("What rests", cooldowns(data.cooldowns, c)) : null,
      card(`Models${data.more_models ? ` (the first ${data.models.length})` : ""}`, data.models.length ? table([
        { head: "Model", cell: (model) => link(`explain/${encodeURIComponent(`${row.id}/${model.id}`)}`, model.id) },
        { head: "Kind", cell: (model) => h("span", { class: "tag" }, model.kind) },
        { head: "Context", num: true, cell: (model) => count(model.context) },
        { head: "Output", num: true, cell: (model) => count(model.max_output) },
        { head: "Can", cell: (model) => ["tools", "vision", "reasoning"].filter((name) => model[name]).map((name) => h("span", { class: "tag" }, name)) },
        { head: "In / out per M", num: true, cell: (model) => model.input_usd === null ? null : `${money(model.input_usd)} / ${money(model.output_usd)}` },
        { head: "Success", num: true, cell: (model) => percent(model.measured.success) },
        { head: "First token", num: true, cell: (model) => ms(model.measured.ttft_ms) },
      ], data.models, { key: (model) => model.id, label: "Models" }) : empty("No model.", "Name its models, or write models = [\"*\"] to take all that it lists.")));
  },
};

const verdict = (told) => told ? h("span", null, badge(told.state), " ", h("span", { class: "muted" }, told.detail || `${told.models} models`)) : null;

async function test(provider, c) {
  c.set({ testing: true, refused: null });
  try {
    const { verdicts } = await post(`/providers/${encodeURIComponent(provider.id)}/test`);
    c.set({ testing: false, verdicts });
    toast(`${verdicts.filter((each) => each.state === "good").length} of ${verdicts.length} keys are good.`);
  } catch (error) {
    c.set({ testing: false, refused: error });
  }
}
