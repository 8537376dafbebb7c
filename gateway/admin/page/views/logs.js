/** What does the log say, now? */
import { ask, events, get } from "../api.js";
import { h } from "../dom.js";
import { badge, button, empty, input } from "../parts.js";

const KEPT = 1_000;
const BAD = /outcome=(failed|broken)| (ERROR|CRITICAL) |"outcome":"(failed|broken)"/, WARN = /outcome=refused| WARNING |"outcome":"refused"/;

export default {
  title: "Logs",
  async load(c) {
    const told = await get("/logs", { limit: 300 }, c);
    if (!c.state.following && !c.state.paused) follow(c, told.last);
    return { lines: told.lines };
  },
  tools: (data, c) => h("div", { class: "row" }, badge(c.state.following ? "following" : "paused", c.state.following ? "good" : "idle"),
    input("log-filter", { type: "search", placeholder: "Filter", "aria-label": "Filter", value: c.state.words || "", style: { width: "180px" }, oninput: (event) => c.set({ words: event.target.value }) }),
    button(c.state.following ? "Pause" : "Follow", () => c.state.following ? pause(c) : c.set({ paused: false }, true))),
  render(data, c) {
    const words = (c.state.words || "").toLowerCase();
    const lines = [...data.lines, ...(c.state.more || [])].slice(-KEPT).filter((line) => line.text.toLowerCase().includes(words));
    if (!lines.length) return empty("No lines.", words ? "No line holds these words." : "Every request writes one; errors and warnings too.");
    const box = h("div", { class: "log", tabindex: "0", role: "log", "aria-label": "Log lines", "aria-live": "off", key: "log" },
      lines.map((line) => h("div", { key: String(line.n), class: BAD.test(line.text) ? "bad" : WARN.test(line.text) ? "warn" : null }, line.text)));
    const old = document.querySelector(".log");
    if (!old || old.scrollHeight - old.scrollTop - old.clientHeight < 40) requestAnimationFrame(() => {
      const now = document.querySelector(".log");
      if (now) now.scrollTop = now.scrollHeight;
    });
    return box;
  },
};

function pause(c) {
  c.state.stop?.abort();
  c.set({ following: false, paused: true });
}

async function follow(c, after) {
  const { state } = c, stop = new AbortController();
  Object.assign(state, { following: true, stop, more: [] });
  c.onLeave(() => stop.abort());
  try {
    const response = await ask(`/logs/tail?after=${after}`, { headers: { "X-Gateway-Idle": "1" }, signal: stop.signal });
    if (response.ok) for await (const data of events(response)) {
      state.more = [...state.more, JSON.parse(data)].slice(-KEPT);
      if (c.state === state) c.redraw();
    }
  } catch { /* the reader left, or the gateway stopped: the badge says that nobody follows */ }
  state.following = false;
  if (c.state === state) c.redraw();
}
