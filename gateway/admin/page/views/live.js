/** What is under way right now? */
import { get } from "../api.js";
import { h } from "../dom.js";
import { count, moment, ms } from "../format.js";
import { badge, card, empty, link } from "../parts.js";
import { waterfall } from "../waterfall.js";

export default {
  title: "Live",
  every_s: 1,
  load: (c) => get("/live", {}, c),
  tools: (data) => h("span", { class: "muted" }, `${count(data.count)} under way`),
  render(data) {
    if (!data.requests.length) return empty("Nothing is under way.", "Requests appear here from their first byte to their last, with every attempt.", link("playground", "Open the playground"));
    return h("div", { class: "stack" }, data.requests.map((call) => h("section", { class: "card", key: call.id },
      h("div", { class: "card-head" }, h("h2", null, call.model || "…"), badge(call.committed ? "answering" : "trying", call.committed ? "good" : "info"),
        call.stream ? h("span", { class: "tag" }, "stream") : null, h("span", { class: "grow" }),
        h("strong", null, ms(call.age_ms))),
      h("dl", { class: "facts" }, fact("since", moment(call.started)), fact("key", call.key), fact("client", call.client), fact("surface", call.surface), fact("id", call.id)),
      call.attempts.length ? waterfall(call.attempts, call.age_ms) : h("p", { class: "muted" }, "Nobody was asked yet."))));
  },
};

const fact = (name, value) => value ? h("div", null, h("dt", null, name), h("dd", null, value)) : null;
