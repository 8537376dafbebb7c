/** Which client keys are there, and what may they? */
import { get, post, send } from "../api.js";
import { h } from "../dom.js";
import { count, money } from "../format.js";
import { badge, bar, button, card, choice, confirm, empty, field, input, problem, reveal, table, tick, toast, topped } from "../parts.js";

const LIMITS = [["rpm", "Requests a minute"], ["tpm", "Tokens a minute"], ["rpd", "Requests a day"], ["concurrency", "At a time"]];
const BUDGETS = [["budget_usd_day", "Dollars a day"], ["budget_usd_month", "Dollars a month"]];
const NEW = { name: "", models: "*", rpm: 0, tpm: 0, rpd: 0, concurrency: 0, budget_usd_day: 0, budget_usd_month: 0, allow_unknown_price: false, group: "", expires: "", note: "" };

export default {
  title: "Client keys",
  load: (c) => get("/keys", {}, c),
  tools: (data, c) => h("div", { class: "row" },
    tick("keys-gone", "show revoked", Boolean(c.state.gone), (event) => c.set({ gone: event.target.checked })),
    button("New key", () => c.set({ form: { ...NEW }, refused: null }), "primary")),
  render(data, c) {
    const rows = data.keys.filter((key) => c.state.gone || key.state !== "revoked");
    return h("div", { class: "stack" },
      c.state.form ? form(data, c) : null,
      data.open ? h("div", { class: "notice" }, "No key yet: whoever is on this machine may ask without one. The first key closes the door for everybody who has none.") : null,
      card("Keys", rows.length ? table([
        { head: "Name", cell: (key) => [h("strong", null, key.name), key.note ? h("div", { class: "muted small" }, key.note) : null] },
        { head: "State", cell: (key) => badge(key.state) },
        { head: "Begins", cell: (key) => key.hint ? h("code", null, key.hint) : h("span", { class: "tag" }, "in the file") },
        { head: "Models", cell: (key) => key.models.slice(0, 3).map((name) => h("span", { class: "tag" }, name)).concat(key.models.length > 3 ? [` +${key.models.length - 3}`] : []) },
        { head: "Limits", cell: (key) => limits(key) },
        { head: "Today", cell: (key) => spent(key.spent_usd_day, key.budget_usd_day) },
        { head: "This month", cell: (key) => spent(key.spent_usd_month, key.budget_usd_month) },
        { head: "Expires", cell: (key) => key.expires ? key.expires.slice(0, 10) : null },
        { head: "", num: true, cell: (key) => key.source === "store" && !key.revoked ? h("span", { class: "row end" },
          button("Edit", () => c.set({ form: { ...key, models: key.models.join(", ") }, refused: null }), "small"),
          button("Rotate", () => rotate(key, c), "small"), button("Revoke", () => revoke(key, c), "small danger")) : null },
      ], rows, { key: (key) => `${key.source} ${key.id || key.name}`, label: "Keys" })
        : empty("No client key.", "Make one for each program or person: it has limits and budgets of its own, and its use is told apart.", button("New key", () => c.set({ form: { ...NEW } }), "primary"))),
      groups(data, c));
  },
};

const limits = (key) => {
  const set = LIMITS.filter(([name]) => key[name]).map(([name]) => h("span", { class: "tag" }, `${name} ${count(key[name])}`));
  return set.length ? set : null;
};

const spent = (usd, budget) => budget ? h("span", { class: "row" }, bar(usd / budget, usd >= budget ? "bad" : usd > 0.8 * budget ? "warn" : ""), `${money(usd)} of ${money(budget)}`) : money(usd);

function form(data, c) {
  const { form: now, refused } = c.state;
  const write = (name, kind = "value") => (event) => { now[name] = kind === "number" ? Number(event.target.value) || 0 : event.target[kind]; };
  const number = ([name, label]) => field(label, input(`key-${name}`, { type: "number", min: 0, step: "any", value: now[name], oninput: write(name, "number") }));
  return topped(now.id ? `Change ${now.name}` : "New key", button("Cancel", () => c.set({ form: null }), "quiet"),
    refused ? problem(refused) : null,
    h("form", { class: "stack", onsubmit: (event) => { event.preventDefault(); save(c); } },
      h("div", { class: "fields" },
        now.id ? null : field("Name", input("key-name", { required: true, maxlength: 100, value: now.name, oninput: write("name"), placeholder: "laptop" })),
        field("Models, by patterns", input("key-models", { value: now.models, oninput: write("models"), placeholder: "gpt-*, groq/*" })),
        field("Expires", input("key-expires", { type: "date", value: (now.expires || "").slice(0, 10), oninput: write("expires") })),
        field("Group", choice("key-group", [["", "none"], ...data.groups.map((group) => [group.name, group.name])], { value: now.group, onchange: write("group") }))),
      h("div", { class: "fields" }, LIMITS.map(number), BUDGETS.map(number)),
      field("Note", input("key-note", { value: now.note, maxlength: 1000, oninput: write("note") })),
      h("div", { class: "row" }, tick("key-unknown", "may use models whose price is unknown although it has a budget", now.allow_unknown_price, write("allow_unknown_price", "checked")),
        h("span", { class: "grow" }), h("button", { class: "primary", type: "submit" }, now.id ? "Save" : "Make the key"))));
}

async function save(c) {
  const { form: now } = c.state;
  const body = Object.fromEntries(Object.keys(NEW).filter((name) => name !== "name" || !now.id).map((name) => [name, now[name]]));
  body.models = now.models.split(",").map((name) => name.trim()).filter(Boolean);
  try {
    if (now.id) await send("PATCH", `/keys/${encodeURIComponent(now.id)}`, body);
    else {
      const { secret, key } = await post("/keys", body);
      reveal(`The key of ${key.name}`, "It is shown now and never again: give it to its user.", secret);
    }
    c.set({ form: null, refused: null }, true);
  } catch (error) {
    c.set({ refused: error });
  }
}

async function tried(c, work) {
  try { await work(); } catch (error) { toast(error.message, "bad"); }
  c.refresh();
}

async function rotate(key, c) {
  if (!await confirm(`A new secret for ${key.name}?`, "The old one stays good for one more day, so that its users can change over.", "Rotate")) return;
  await tried(c, async () => {
    const { secret } = await post(`/keys/${encodeURIComponent(key.id)}/rotate`, { grace_s: 86_400 });
    reveal(`The new key of ${key.name}`, "It is shown now and never again. The old one is good for one more day.", secret);
  });
}

async function revoke(key, c) {
  if (!await confirm(`Revoke ${key.name}?`, "Its requests are refused from now on; this cannot be undone.", "Revoke")) return;
  await tried(c, async () => { await post(`/keys/${encodeURIComponent(key.id)}/revoke`); toast(`${key.name} is revoked.`); });
}

function groups(data, c) {
  const now = c.state.group || (c.state.group = { name: "", parent: "", budget_usd_day: 0, budget_usd_month: 0 });
  const number = ([name, label]) => field(label, input(`group-${name}`, { type: "number", min: 0, step: "any", value: now[name], oninput: (event) => { now[name] = Number(event.target.value) || 0; } }));
  return card("Groups: keys that share a budget", data.groups.length ? table([
    { head: "Group", cell: (group) => group.name },
    { head: "Part of", cell: (group) => group.parent || null },
    { head: "Today", cell: (group) => spent(group.spent_usd_day, group.budget_usd_day) },
    { head: "This month", cell: (group) => spent(group.spent_usd_month, group.budget_usd_month) },
    { head: "", num: true, cell: (group) => button("Remove", () => tried(c, () => send("DELETE", `/groups/${encodeURIComponent(group.name)}`)), "small danger") },
  ], data.groups, { key: (group) => group.name, label: "Groups" }) : null,
  h("form", { class: "fields", onsubmit: (event) => { event.preventDefault();
    const { name, ...body } = now;
    tried(c, async () => { await send("PUT", `/groups/${encodeURIComponent(name)}`, body); c.state.group = null; }); } },
    field("Group", input("group-name", { required: true, maxlength: 100, value: now.name, oninput: (event) => { now.name = event.target.value; }, placeholder: "team" })),
    field("Part of", choice("group-parent", [["", "none"], ...data.groups.map((group) => [group.name, group.name])], { value: now.parent, onchange: (event) => { now.parent = event.target.value; } })),
    BUDGETS.map(number), h("div", null, h("button", { type: "submit" }, "Save group"))));
}
