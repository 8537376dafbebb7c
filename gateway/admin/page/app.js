/** What is the frame of all pages? Sign-in, navigation, theme, and the round of every view: load, draw, look again. */
import { gone, get, post } from "./api.js";
import { prepare, redraw } from "./chart.js";
import { h, morph } from "./dom.js";
import { button, field, input, problem } from "./parts.js";
import { GROUPS, VIEWS } from "./views.js";

const root = document.getElementById("app");
const shown = { standing: null, view: null, params: [], state: {}, data: null, error: null, busy: false, timer: 0, round: 0, leave: null };
let drawn = null;

// ---------------------------------------------------------------- theme
const THEMES = [["system", "Auto"], ["light", "Light"], ["dark", "Dark"]];
const chosenTheme = () => { try { return localStorage.getItem("gateway-theme") || "system"; } catch { return "system"; } };

function theme(name) {
  if (name === "system") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.setAttribute("data-theme", name);
  try { localStorage.setItem("gateway-theme", name); } catch { /* a browser without storage forgets the choice */ }
  requestAnimationFrame(redraw);
}

// ---------------------------------------------------------------- the round of a view
function route() {
  const [name, ...params] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  clearTimeout(shown.timer);
  shown.leave?.();
  Object.assign(shown, { view: VIEWS[name] || VIEWS.overview, params, state: {}, data: null, error: null, leave: null, round: shown.round + 1 });
  document.title = `${shown.view.title} · gateway`;
  draw();
  load(false).then(() => document.querySelector("main")?.focus({ preventScroll: true }));
  scrollTo(0, 0);
}

const context = {
  get params() { return shown.params; },
  get state() { return shown.state; },
  get standing() { return shown.standing; },
  refresh: () => load(false),
  redraw: () => draw(),
  set: (changes, reload = false) => { Object.assign(shown.state, changes); draw(); if (reload) load(false); },
  go: (to) => { location.hash = `#/${to}`; },
  onLeave: (work) => { shown.leave = work; },
  idle: false,
};

async function load(idle) {
  clearTimeout(shown.timer);
  const round = shown.round, view = shown.view;
  context.idle = idle;
  try {
    const data = view.load ? await view.load(context) : {};
    if (round !== shown.round) return;
    Object.assign(shown, { data, error: null });
  } catch (error) {
    if (round !== shown.round || error.name === "AbortError") return;
    shown.error = error;
    if (!("status" in error)) console.error(error);
  }
  draw();
  if (view.every_s) shown.timer = setTimeout(() => document.hidden ? wait(round) : load(true), view.every_s * 1_000);
}

/** Nobody looks: look again when somebody does. */
function wait(round) {
  const seen = () => {
    document.removeEventListener("visibilitychange", seen);
    if (round === shown.round) load(true);
  };
  document.addEventListener("visibilitychange", seen);
}

// ---------------------------------------------------------------- drawing
function draw() {
  let next;
  try {
    next = shown.standing?.signed_in ? frame() : signIn();
  } catch (error) {
    console.error(error);
    next = h("main", { class: "alone" }, problem(error));
  }
  drawn = drawn ? morph(drawn, next) : (root.replaceChildren(next), next);
}

function frame() {
  const view = shown.view;
  return h("div", { class: "frame", key: "frame" },
    h("a", { class: "skip", href: "#main", onclick: (event) => { event.preventDefault(); document.querySelector("main").focus(); } }, "Skip to content"),
    h("header", { class: "side" },
      h("a", { class: "brand", href: "#/overview" }, h("img", { src: "/admin/page/icon.svg", alt: "", width: "24", height: "24" }), "gateway"),
      h("nav", { "aria-label": "Pages" }, GROUPS.map(([title, names]) => h("div", { class: "group" }, h("div", { class: "group-title" }, title),
        names.map((name) => h("a", { href: `#/${name}`, "aria-current": VIEWS[name] === (view.within ? VIEWS[view.within] : view) ? "page" : null },
          VIEWS[name].title))))),
      h("div", { class: "foot" },
        h("div", { class: "switcher small", role: "group", "aria-label": "Theme" }, THEMES.map(([name, label]) => h("button", {
          type: "button", "aria-pressed": String(chosenTheme() === name), onclick: () => { theme(name); draw(); } }, label))),
        h("div", { class: "row muted small" }, `v${shown.standing.version}`, h("span", { class: "grow" }),
          shown.standing.how === "session" ? button("Sign out", signOut, "quiet small") : null))),
    h("main", { id: "main", tabindex: "-1" },
      h("div", { class: "page-head" }, h("h1", null, shown.data && view.heading ? view.heading(shown.data, context) : view.title), view.tools && shown.data ? view.tools(shown.data, context) : null),
      shown.error ? problem(shown.error) : null,
      shown.data ? h("div", { key: `view-${shown.round}` }, view.render(shown.data, context))
        : shown.error ? null : h("div", { class: "loading", role: "status" }, "Loading …")));
}

function signIn() {
  const { state } = shown;
  return h("main", { class: "alone", key: "sign-in" },
    h("form", { class: "card sign-in", onsubmit: async (event) => {
      event.preventDefault();
      try {
        await post("/login", { password: event.target.querySelector("input").value });
        await begin();
      } catch (error) {
        state.refused = error;
        draw();
      }
    } },
    h("div", { class: "brand" }, h("img", { src: "/admin/page/icon.svg", alt: "", width: "28", height: "28" }), "gateway"),
    state.refused ? problem(state.refused) : null,
    shown.standing?.password ? [field("Password", input("password", { type: "password", required: true, autocomplete: "current-password" })),
      h("button", { class: "primary", type: "submit" }, "Sign in")]
      : h("p", null, "Nobody can sign in: no password is set. Make one with ", h("code", null, "gateway admin-password"),
          " and write it into ", h("code", null, "[admin] password_hash"), ".")));
}

async function signOut() {
  shown.leave?.();
  await post("/logout");
  shown.standing = { ...shown.standing, signed_in: false };
  clearTimeout(shown.timer);
  draw();
}

async function begin() {
  shown.standing = await get("/session");
  await prepare(shown.standing.charts);
  if (shown.standing.signed_in) route();
  else draw();
}

// ---------------------------------------------------------------- start
gone.handler = () => {
  if (!shown.standing?.signed_in) return;
  clearTimeout(shown.timer);
  shown.leave?.();
  shown.standing = { ...shown.standing, signed_in: false };
  shown.round += 1;
  draw();
};
theme(chosenTheme());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => requestAnimationFrame(redraw));
addEventListener("hashchange", () => { if (shown.standing?.signed_in) route(); });
begin().catch((error) => root.replaceChildren(h("main", { class: "alone" }, problem(error))));
