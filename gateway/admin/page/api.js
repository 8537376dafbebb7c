/** How does the page talk to the gateway? JSON below /admin/api; a header that no other page can send; what failed, in words. */

const HEADER = { "X-Gateway-Admin": "1" };

export class Refused extends Error {
  constructor(status, told) {
    super(told?.message || `The gateway answered ${status}.`);
    this.status = status;
    this.code = told?.code || "";
    this.param = told?.param || "";
  }
}

/** Called when the session is over. */
export const gone = { handler: () => {} };

/** `idle`: a refresh that nobody clicked, which does not keep a session alive. */
export async function get(path, query = {}, { idle = false, signal } = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const search = given.length ? "?" + new URLSearchParams(given.map(([name, value]) => [name, String(value)])) : "";
  return read(await ask(path + search, { headers: idle ? { ...HEADER, "X-Gateway-Idle": "1" } : HEADER, signal }));
}

export async function send(method, path, body = {}) {
  return read(await ask(path, { method, headers: { ...HEADER, "Content-Type": "application/json" }, body: JSON.stringify(body) }));
}

export const post = (path, body) => send("POST", path, body);

/** The response itself, for streams. */
export async function ask(path, options) {
  let response;
  try {
    response = await fetch("/admin/api" + path, { credentials: "same-origin", cache: "no-store", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, { message: "The gateway does not answer. Is it still running?" });
  }
  return response;
}

async function read(response) {
  const text = await response.text();
  let told;
  try {
    told = text ? JSON.parse(text) : null;
  } catch {
    throw new Refused(response.status, { message: "The answer is no JSON; is something between this page and the gateway?" });
  }
  if (response.ok) return told;
  if (response.status === 401 && told?.error?.code === "sign_in") gone.handler();
  throw new Refused(response.status, told?.error);
}

/** The frames of a stream of server-sent events, as text. */
export async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) if (line.startsWith("data:")) yield line.slice(5).trim();
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
