/** What does the gateway go by, and what would another configuration change? */
import { get, post } from "../api.js";
import { h } from "../dom.js";
import { moment } from "../format.js";
import { badge, button, card, confirm, empty, plural, switcher, table, toast, topped } from "../parts.js";

const TABS = [["settings", "In force"], ["text", "File"], ["check", "Try another"]];

export default {
  title: "Configuration",
  load: () => get("/config"),
  tools: (data, c) => h("div", { class: "row" }, switcher("Part", TABS, c.state.tab || "settings", (tab) => c.set({ tab, verdict: null })),
    data.can_reload ? [button("Compare with the file", () => compare(c)), button("Reload", () => reload(c), "primary")] : null),
  render(data, c) {
    return h("div", { class: "stack" },
      h("dl", { class: "facts" }, [["file", data.source || "none; keys were found in the environment"], ["loaded", moment(data.loaded_at)]].map(([name, value]) =>
        h("div", null, h("dt", null, name), h("dd", null, value)))),
      data.warnings.length ? card("Warnings", told(data.warnings)) : null,
      c.state.verdict ? judged(c.state.verdict) : null,
      { settings, text, check }[c.state.tab || "settings"](data, c));
  },
};

const told = (rows) => table([{ head: "Where", cell: (row) => h("code", null, row.path || "file") }, { head: "What", wrap: true, cell: (row) => row.message }], rows,
  { label: "Problems" });

const settings = (data) => card("What differs from the defaults; secrets are ***", data.settings.length ? table([
  { head: "Setting", cell: (row) => h("code", null, row.path) }, { head: "Value", wrap: true, cell: (row) => h("code", null, row.value) },
], data.settings, { key: (row) => row.path, label: "Settings" }) : empty("Everything is as it comes.", "Without a configuration the gateway uses the providers whose keys it finds in the environment."));

const text = (data) => card("The file, without secrets", data.text ? h("pre", { tabindex: "0" }, data.text)
  : empty(data.source ? "The file cannot be shown." : "There is no file.", data.source ? "A secret in it could not be masked for sure." : "Write gateway.toml; `gateway check` says what is wrong with it."));

function check(data, c) {
  return topped("A configuration to look at; nothing is put in force", button("Check it", () => judge(c), "primary"),
    h("textarea", { id: "config-text", class: "code", "aria-label": "Configuration in TOML", spellcheck: "false", placeholder: "[[providers]]\npreset = \"groq\"\n…",
      oninput: (event) => { c.state.text = event.target.value; } }, c.state.text || ""));
}

function judged(verdict) {
  return card(null, h("div", { class: "row" }, badge(verdict.ok ? "good" : "bad", verdict.ok ? "good" : "bad"),
    verdict.ok ? verdict.changes.length ? `It would change ${plural(verdict.changes.length, "setting")}.` : "It says the same as what is in force." : `${plural(verdict.problems.length, "problem")}; it would be refused.`),
    verdict.problems.length ? told(verdict.problems) : null,
    verdict.warnings.length ? told(verdict.warnings) : null,
    verdict.changes.length ? table([
      { head: "Setting", cell: (row) => h("code", null, row.path) },
      { head: "In force", wrap: true, cell: (row) => row.before === null ? null : h("code", { class: "before" }, row.before) },
      { head: "There", wrap: true, cell: (row) => row.after === null ? null : h("code", { class: "after" }, row.after) },
    ], verdict.changes, { key: (row) => row.path, label: "Changes" }) : null);
}

async function tried(c, work) {
  try { await work(); } catch (error) { toast(error.message, "bad"); }
}

const judge = (c) => tried(c, async () => c.set({ verdict: await post("/config/validate", { text: c.state.text || "" }) }));
const compare = (c) => tried(c, async () => c.set({ verdict: await get("/config/diff") }));

async function reload(c) {
  if (!await confirm("Put the file in force?", "A bad file is refused and the old configuration stays. Requests under way keep what they have.", "Reload")) return;
  await tried(c, async () => {
    const { ok, problems } = await post("/reload");
    c.set({ verdict: ok ? null : { ok, problems, warnings: [], changes: [] } });
    toast(ok ? "The configuration is in force." : "The file was refused.", ok ? "good" : "bad");
    await c.refresh();
  });
}
