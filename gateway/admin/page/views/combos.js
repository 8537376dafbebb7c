/** Which combos are there, and what stands in them? */
import { get, post, send } from "../api.js";
import { h } from "../dom.js";
import { ms } from "../format.js";
import { badge, button, card, choice, confirm, empty, field, input, link, problem, table, toast, topped } from "../parts.js";

const ABOUT = { priority: "one after the other", weighted: "by lot, by weight", "round-robin": "in turns", "cost-optimized": "the cheapest first", p2c: "the better of two",
  "least-used": "who was asked least", random: "by lot", auto: "by score", lkgp: "who answered last", fusion: "all, and a judge", headroom: "who has most quota left",
  "fill-first": "one until it is full", "context-optimized": "the smallest context that fits", bandit: "by what was learned" };

export default {
  title: "Combos",
  async load(c) {
    const told = await get("/combos", {}, c);
    if (!c.state.names) c.state.names = (await get("/names", {}, c)).names;
    return told;
  },
  tools: (data, c) => button("New combo", () => c.set({ form: { name: "", description: "", strategy: "priority", targets: [{ target: "", weight: 1 }], rest: {}, fresh: true }, refused: null }), "primary"),
  render(data, c) {
    const own = data.combos.filter((combo) => combo.source === "store").map((combo) => combo.name);
    return h("div", { class: "stack" },
      c.state.form ? form(data, c) : null,
      data.combos.length ? data.combos.map((combo) => one(combo, own, c))
        : empty("No combo yet.", "A combo is a name for several targets and the order in which they are asked; clients ask for it like for a model.",
            button("New combo", () => c.set({ form: { name: "", description: "", strategy: "priority", targets: [{ target: "", weight: 1 }], rest: {}, fresh: true } }), "primary")));
  },
};

function one(combo, own, c) {
  const mine = combo.source === "store", place = own.indexOf(combo.name), tested = c.state.tested?.[combo.name];
  const tools = h("div", { class: "row" },
    mine && own.length > 1 ? [button("↑", () => move(own, place, -1, c), "small", { disabled: place === 0, "aria-label": `${combo.name} up` }),
      button("↓", () => move(own, place, 1, c), "small", { disabled: place === own.length - 1, "aria-label": `${combo.name} down` })] : null,
    link(`explain/${encodeURIComponent(`combo/${combo.name}`)}`, "Explain"),
    button(tested === "running" ? "Testing …" : "Test", () => test(combo, c), "small", { disabled: tested === "running" }),
    mine ? [button("Edit", () => c.set({ form: editable(combo), refused: null }), "small"), button("Delete", () => drop(combo, c), "small danger")] : null);
  return h("section", { class: "card", key: `combo-${combo.name}` },
    h("div", { class: "card-head" }, h("h2", null, combo.name), h("span", { class: "tag" }, combo.strategy || "not in force"),
      h("span", { class: "muted small" }, ABOUT[combo.strategy] || ""), mine ? null : h("span", { class: "tag" }, "in the file"), h("span", { class: "grow" }), tools),
    combo.table?.description ? h("p", { class: "muted" }, combo.table.description) : null,
    combo.warnings.length ? h("div", { class: "problem" }, combo.warnings.map((text) => h("div", null, text))) : null,
    h("ol", { class: "steps" }, combo.steps.map((step, at) => h("li", { key: `step-${at}` }, h("span", { class: "place" }, String(at + 1)), h("span", null, step.target || `combo ${step.combo}`), null, null))),
    Array.isArray(tested) ? table([
      { head: "Target", cell: (row) => row.target }, { head: "Key", cell: (row) => row.account }, { head: "Said", cell: (row) => badge(row.ok ? "ok" : row.kind, row.ok ? "good" : "bad") },
      { head: "After", num: true, cell: (row) => ms(row.took_ms) }, { head: "", wrap: true, cell: (row) => row.ok ? row.text : row.message },
    ], tested, { key: (row) => row.target, label: "Test" }) : null);
}

const editable = ({ table: { name, description = "", strategy = "priority", targets = [], ...rest } }) => ({ name, description, strategy, rest, fresh: false,
  targets: targets.map((step) => typeof step === "string" ? { target: step, weight: 1 } : { weight: 1, ...step, target: step.target || (step.combo ? `combo/${step.combo}` : "") }) });

function form(data, c) {
  const { form: now, refused } = c.state;
  const step = (at, changes) => { now.targets = now.targets.map((each, place) => place === at ? { ...each, ...changes } : each); };
  const shift = (at, by) => { const all = [...now.targets]; const [taken] = all.splice(at, 1); all.splice(at + by, 0, taken); now.targets = all; c.redraw(); };
  return topped(now.fresh ? "New combo" : `Change ${now.name}`, button("Cancel", () => c.set({ form: null }), "quiet"),
    refused ? problem(refused) : null,
    h("datalist", { id: "combo-names" }, (c.state.names || []).slice(0, 1_000).map((name) => h("option", { value: name }))),
    h("form", { class: "stack", onsubmit: (event) => { event.preventDefault(); save(c); } },
      h("div", { class: "fields" },
        now.fresh ? field("Name", input("combo-name", { required: true, maxlength: 100, value: now.name, placeholder: "best", oninput: (event) => { now.name = event.target.value; } })) : null,
        field("Order", choice("combo-strategy", data.strategies, { value: now.strategy, onchange: (event) => { now.strategy = event.target.value; c.redraw(); } }), ABOUT[now.strategy]),
        field("Description", input("combo-description", { value: now.description, maxlength: 2000, oninput: (event) => { now.description = event.target.value; } }))),
      h("ol", { class: "steps" }, now.targets.map((each, at) => h("li", { key: `edit-${at}` }, h("span", { class: "place" }, String(at + 1)),
        input(`combo-target-${at}`, { list: "combo-names", value: each.target, required: true, placeholder: "provider/model, a pattern such as groq/*, or combo/NAME", "aria-label": `Target ${at + 1}`, oninput: (event) => step(at, { target: event.target.value }) }),
        input(`combo-weight-${at}`, { type: "number", min: 0, step: "any", value: each.weight, "aria-label": `Weight ${at + 1}`, title: "weight", oninput: (event) => step(at, { weight: Number(event.target.value) || 0 }) }),
        h("span", { class: "row" }, button("↑", () => shift(at, -1), "small", { disabled: at === 0, "aria-label": `Target ${at + 1} up` }),
          button("↓", () => shift(at, 1), "small", { disabled: at === now.targets.length - 1, "aria-label": `Target ${at + 1} down` }),
          button("Remove", () => { now.targets = now.targets.filter((_, place) => place !== at); c.redraw(); }, "small danger"))))),
      h("div", { class: "row" }, button("Add a target", () => { now.targets = [...now.targets, { target: "", weight: 1 }]; c.redraw(); }),
        Object.keys(now.rest).length ? h("span", { class: "muted small" }, `stays as it is: ${Object.keys(now.rest).join(", ")}`) : null,
        h("span", { class: "grow" }), h("button", { class: "primary", type: "submit" }, "Save"))));
}

async function save(c) {
  const { form: now } = c.state;
  const targets = now.targets.map(({ target, weight, combo, ...more }) => target.startsWith("combo/") ? { combo: target.slice(6), weight, ...more } : { target, weight, ...more });
  try {
    const made = await send("PUT", `/combos/${encodeURIComponent(now.name)}`, { ...now.rest, description: now.description, strategy: now.strategy, targets });
    toast(made.warnings.length ? `${made.name} is in force, with a warning.` : `${made.name} is in force.`);
    c.set({ form: null, refused: null, names: null }, true);
  } catch (error) {
    c.set({ refused: error });
  }
}

async function tried(c, work) {
  try { await work(); } catch (error) { toast(error.message, "bad"); }
  c.refresh();
}

const move = (own, place, by, c) => tried(c, async () => {
  const names = [...own], [taken] = names.splice(place, 1);
  names.splice(place + by, 0, taken);
  await post("/combos/order", { names });
});

async function drop(combo, c) {
  if (await confirm(`Delete ${combo.name}?`, "Clients that ask for it will be told that there is no such model.", "Delete")) {
    await tried(c, () => send("DELETE", `/combos/${encodeURIComponent(combo.name)}`));
  }
}

async function test(combo, c) {
  const note = (value) => c.set({ tested: { ...c.state.tested, [combo.name]: value } });
  note("running");
  try {
    note((await post(`/combos/${encodeURIComponent(combo.name)}/test`)).probed);
  } catch (error) {
    note(null);
    toast(error.message, "bad");
  }
}
