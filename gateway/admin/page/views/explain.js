/** Who would serve a name now, and why? */
import { get } from "../api.js";
import { h } from "../dom.js";
import { money, seconds } from "../format.js";
import { badge, card, empty, field, input, problem, table, tick } from "../parts.js";

const asked = (c) => ({ model: c.params[0] || "auto", tools: false, image: false, tokens: 0, ...c.state.asked });

export default {
  title: "Explain routing",
  async load(c) {
    const names = c.state.names || (await get("/names")).names;
    c.state.names = names;
    try {
      return { names, told: await get("/explain", asked(c)), refused: null };
    } catch (error) {
      if (!error.status) throw error;
      return { names, told: null, refused: error };
    }
  },
  render({ names, told, refused }, c) {
    const now = asked(c);
    const change = (changes) => c.set({ asked: { ...now, ...changes } }, true);
    return h("div", { class: "stack" },
      card(null, h("form", { class: "fields", onsubmit: (event) => { event.preventDefault(); change({ model: event.target.querySelector("#explain-model").value }); } },
        h("datalist", { id: "explain-names" }, names.slice(0, 1_000).map((name) => h("option", { value: name }))),
        field("A client asks for", input("explain-model", { list: "explain-names", value: now.model, onchange: (event) => change({ model: event.target.value }) })),
        field("Tokens in its prompt", input("explain-tokens", { type: "number", min: 0, step: 1000, value: now.tokens, onchange: (event) => change({ tokens: Number(event.target.value) || 0 }) })),
        h("div", { class: "row" }, tick("explain-tools", "offers tools", now.tools, (event) => change({ tools: event.target.checked })),
          tick("explain-image", "holds a picture", now.image, (event) => change({ image: event.target.checked }))),
        h("div", null, h("button", { class: "primary", type: "submit" }, "Explain")))),
      refused ? problem(refused) : null, told ? places(told) : null);
  },
};

const KINDS = { target: "one provider's model", combo: "a combo", model: "a model", alias: "an alias", virtual: "a virtual model", family: "a family name" };

function places(told) {
  const used = told.places.filter((place) => place.position !== null);
  const skipped = told.places.filter((place) => place.position === null);
  const why = [{ head: "Target", cell: (place) => place.label }, { head: "Key", cell: (place) => place.account_label || place.account },
    { head: "Because", wrap: true, cell: (place) => place.reason },
    { head: "In / out per M", num: true, cell: (place) => place.input_usd === null ? null : `${money(place.input_usd)} / ${money(place.output_usd)}` }];
  return h("div", { class: "stack" },
    card(`${told.model} is ${KINDS[told.kind] || told.kind}, in ${told.strategy} order`, used.length ? table([
      { head: "", cell: (place) => h("span", { class: "place" }, String(place.position)) }, ...why,
    ], used, { key: (place) => `${place.place}-${place.position}`, label: "Order of attempts" }) : empty("Nobody can be asked now.", "Everybody below is skipped for the reason beside it.")),
    skipped.length ? card("Skipped", table([
      { head: "", cell: (place) => badge(place.skip, "warn") }, ...why,
      { head: "Again in", num: true, cell: (place) => place.retry_s === null ? null : seconds(place.retry_s) },
    ], skipped, { label: "Skipped targets" })) : null,
    told.more ? h("p", { class: "muted" }, `${told.more} more places are not shown.`) : null);
}
