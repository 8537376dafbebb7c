/** Who changed what? */
import { get } from "../api.js";
import { h } from "../dom.js";
import { moment } from "../format.js";
import { badge, button, card, empty, table } from "../parts.js";

export default {
  title: "Audit log",
  async load(c) {
    const pages = c.state.pages || 1;
    const rows = [];
    for (let page = 0; page < pages; page += 1) {
      const { changes } = await get("/audit", { before: rows.length ? rows[rows.length - 1].number : 0 }, c);
      rows.push(...changes);
      if (changes.length < 100) return { rows, more: false };
    }
    return { rows, more: true };
  },
  render({ rows, more }, c) {
    return card(null, rows.length ? table([
      { head: "When", cell: (row) => moment(row.at) },
      { head: "By", cell: (row) => h("span", { class: "tag" }, row.who) },
      { head: "What", cell: (row) => row.action },
      { head: "", cell: (row) => badge(row.ok ? "done" : "refused", row.ok ? "good" : "bad") },
      { head: "Of", cell: (row) => row.subject || null },
      { head: "More", wrap: true, cell: (row) => row.detail || null },
    ], rows, { key: (row) => row.number, label: "Changes" }) : empty("Nothing was changed yet.", "Sign-ins, cleared cooldowns, keys, combos and reloads are told here, refused ones too."),
    more ? h("div", null, button("Older", () => c.set({ pages: (c.state.pages || 1) + 1 }, true))) : null);
  },
};
