/** What is saved by answers given again, and by smaller prompts? */
import { get, post } from "../api.js";
import { h } from "../dom.js";
import { count, percent, seconds } from "../format.js";
import { badge, bar, button, empty, figure, plural, table, toast, topped } from "../parts.js";

export default {
  title: "Savings",
  every_s: 5,
  load: (c) => get("/savings", {}, c),
  render: ({ cache, compression }, c) => h("div", { class: "stack" }, answers(cache, c), prompts(compression)),
};

const bytes = (n) => n < 1_048_576 ? `${count(Math.round(n / 1_024))} KB` : `${(n / 1_048_576).toFixed(1)} MB`;

function answers(cache, c) {
  return topped("Answers given again", h("div", { class: "row" }, badge(cache.always ? "for everybody" : "where a client asks", cache.always ? "good" : "idle"),
    button("Clear", () => clear(c), "small", { disabled: !cache.entries })),
    h("div", { class: "figures" },
      figure("Hit rate", percent(cache.hit_rate), `${count(cache.hits)} of ${count(cache.hits + cache.misses)}`),
      figure("Tokens saved", count(cache.saved_input_tokens + cache.saved_output_tokens), `${count(cache.saved_output_tokens)} of them out`),
      figure("Waited", count(cache.waited), "for an identical request"),
      figure("Kept", count(cache.entries), `of ${count(cache.max_entries)}, for ${seconds(cache.ttl_s)}`),
      figure("Memory", bytes(cache.bytes), h("span", { class: "row" }, bar(cache.max_bytes ? cache.bytes / cache.max_bytes : 0), ` of ${bytes(cache.max_bytes)}`)),
      figure("Pushed out", count(cache.evicted), `${count(cache.too_large)} were too large`)),
    cache.hits + cache.misses ? null : empty("Nothing was looked up yet.", "Write enabled = true below [cache], or send the header X-FreeLLM-Cache: on with a request."));
}

function prompts(compression) {
  const rows = Object.entries(compression.counts).filter(([, value]) => typeof value !== "object");
  return topped("Prompts made smaller", badge(compression.mode, compression.mode !== "off" ? "good" : "idle"),
    rows.length ? table([{ head: "What", cell: ([name]) => name.replaceAll("_", " ") }, { head: "How much", num: true, cell: ([, value]) => typeof value === "number" ? count(value) : String(value) }],
      rows, { key: ([name]) => name, label: "Compression" })
      : empty("Nothing was made smaller.", "Write a mode below [compression], or send the header X-FreeLLM-Compress with a request."));
}

async function clear(c) {
  try {
    toast(`${plural((await post("/cache/clear")).cleared, "answer")} gone.`);
  } catch (error) {
    toast(error.message, "bad");
  }
  c.refresh();
}
