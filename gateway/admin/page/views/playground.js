/** How does an answer look, and who gives it? Asks as a client would, and streams. */
import { ask, events, get } from "../api.js";
import { h } from "../dom.js";
import { count, ms } from "../format.js";
import { badge, button, card, empty, field, input, link, problem, tick } from "../parts.js";

const START = { model: "auto", system: "", prompt: "", max_tokens: 1024, temperature: "", stream: true };

export default {
  title: "Playground",
  async load(c) {
    return { names: c.state.names || (c.state.names = (await get("/names")).names) };
  },
  render({ names }, c) {
    const form = c.state.form || (c.state.form = { ...START, model: c.params[0] || START.model });
    const write = (name, kind = "value") => (event) => { form[name] = event.target[kind]; };
    const run = (event) => { event.preventDefault(); converse(c); };
    return h("div", { class: "columns" },
      h("form", { class: "card", onsubmit: run },
        h("datalist", { id: "play-names" }, names.slice(0, 1_000).map((name) => h("option", { value: name }))),
        field("Model", input("play-model", { list: "play-names", value: form.model, oninput: write("model"), required: true })),
        field("Instructions", h("textarea", { id: "play-system", rows: 2, style: { "min-height": "56px" }, oninput: write("system"), placeholder: "Optional" }, form.system)),
        field("Message", h("textarea", { id: "play-prompt", rows: 6, oninput: write("prompt"), required: true, placeholder: "Ask something. Ctrl+Enter sends.",
          onkeydown: (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run(event); } }, form.prompt)),
        h("div", { class: "fields" },
          field("Longest answer", input("play-max", { type: "number", min: 1, value: form.max_tokens, oninput: write("max_tokens") })),
          field("Temperature", input("play-temperature", { type: "number", min: 0, max: 2, step: 0.1, value: form.temperature, placeholder: "default", oninput: write("temperature") })),
          tick("play-stream", "stream", form.stream, write("stream", "checked"))),
        h("div", { class: "row" }, c.state.running ? button("Stop", () => c.state.stop.abort(), "danger")
          : h("button", { class: "primary", type: "submit" }, "Send"), h("small", null, "Real requests: they cost what they cost."))),
      answer(c.state.talk, c));
  },
};

function answer(talk) {
  if (!talk) return card("Answer", empty("Nothing asked yet.", "The answer streams here, with the target that gave it and everybody who was tried before."));
  return card("Answer", h("div", { class: "talk" },
    h("dl", { class: "facts" },
      fact("answered by", talk.routed ? h("strong", null, talk.routed) : talk.done ? "nobody" : "…"),
      fact("first token", ms(talk.first_ms)), fact("whole", ms(talk.whole_ms)),
      fact("tokens", talk.usage ? `${count(talk.usage.prompt_tokens)} in, ${count(talk.usage.completion_tokens)} out` : null),
      fact("finish", talk.finish ? badge(talk.finish, "idle") : null)),
    talk.trail ? h("div", { class: "notice" }, `${talk.attempts} moved on before: ${talk.trail}`) : null,
    talk.error ? problem(talk.error) : null,
    talk.thought ? h("div", { class: "said thought" }, talk.thought) : null,
    h("div", { class: "said", "aria-live": "polite", "aria-busy": String(!talk.done) }, talk.text || (talk.done ? "" : "…")),
    talk.calls.length ? h("pre", null, talk.calls.map((call) => `${call.name}(${call.arguments})`).join("\n")) : null,
    talk.id ? h("p", { class: "muted small" }, "Request ", talk.done ? link(`request/${encodeURIComponent(talk.id)}`, talk.id) : talk.id) : null));
}

const fact = (name, value) => value ? h("div", null, h("dt", null, name), h("dd", null, value)) : null;

async function converse(c) {
  if (c.state.running) return;
  const { form } = c.state, stop = new AbortController();
  const talk = { text: "", thought: "", calls: [], routed: "", trail: "", done: false, error: null };
  c.onLeave(() => stop.abort());
  c.set({ running: true, stop, talk });
  const began = performance.now();
  const body = { model: form.model, stream: form.stream, messages: [...(form.system ? [{ role: "system", content: form.system }] : []), { role: "user", content: form.prompt }] };
  if (Number(form.max_tokens)) body.max_tokens = Number(form.max_tokens);
  if (form.temperature !== "") body.temperature = Number(form.temperature);
  if (form.stream) body.stream_options = { include_usage: true };
  try {
    const response = await ask("/playground", { method: "POST", signal: stop.signal, body: JSON.stringify(body),
      headers: { "X-Gateway-Admin": "1", "Content-Type": "application/json" } });
    Object.assign(talk, { routed: response.headers.get("X-Routed-Via") || "", attempts: response.headers.get("X-Fallback-Attempts"),
      trail: response.headers.get("X-Fallback-Trail") || "", id: response.headers.get("X-Request-ID") });
    if (form.stream && response.ok) await streamed(response, talk, began, c);
    else whole(await response.json(), talk);
  } catch (error) {
    if (error.name !== "AbortError") talk.error = error;
  }
  talk.done = true;
  talk.whole_ms = performance.now() - began;
  c.set({ running: false });
}

async function streamed(response, talk, began, c) {
  let drawn = 0;
  for await (const data of events(response)) {
    if (data === "[DONE]") break;
    const frame = JSON.parse(data);
    if (frame.error) { talk.error = frame.error; continue; }
    if (frame.usage) talk.usage = frame.usage;
    const { delta, finish_reason } = frame.choices?.[0] || {};
    if (finish_reason) talk.finish = finish_reason;
    if (!delta) continue;
    if (talk.first_ms === undefined && (delta.content || delta.reasoning_content || delta.tool_calls)) talk.first_ms = performance.now() - began;
    talk.text += delta.content || "";
    talk.thought += delta.reasoning_content || "";
    for (const call of delta.tool_calls || []) {
      const into = talk.calls[call.index] || (talk.calls[call.index] = { name: "", arguments: "" });
      into.name += call.function?.name || "";
      into.arguments += call.function?.arguments || "";
    }
    if (performance.now() - drawn > 60) { drawn = performance.now(); c.redraw(); }
  }
}

function whole(told, talk) {
  if (told.error) { talk.error = told.error; return; }
  const { message, finish_reason } = told.choices?.[0] || {};
  Object.assign(talk, { text: message?.content || "", thought: message?.reasoning_content || "", finish: finish_reason, usage: told.usage,
    calls: (message?.tool_calls || []).map((call) => call.function) });
}
