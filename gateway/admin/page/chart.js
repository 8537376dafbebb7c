/** How are curves drawn? By uPlot where it is installed, as a table where it is not, or where somebody would rather read. */
import { h } from "./dom.js";
import { clock, DASH, moment } from "./format.js";

let plot = null;

/** Load uPlot if the gateway has it; asking for a file that is not there would be an error in the console. */
export async function prepare(installed) {
  if (!installed || plot) return;
  document.head.append(h("link", { rel: "stylesheet", href: "/admin/page/vendor/uplot.css" }));
  plot = (await import("./vendor/uplot.js")).default;
}

export const drawn = () => plot !== null;

const HEIGHT = 168;
const TABLE_ROWS = 24;
const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 1e6, 1e7, 1e8, 1e9];
const charts = new Set();

/** `spec`: {id, label, at: [epoch…], lines: [{name, values, colour, fill, bars}], shown: value -> text}. Colours are names of
 *  custom properties, so that they follow the theme. `whole`: there are no halves of what is counted. */
export function chart(spec) {
  const box = h("div", { own: `chart-${spec.id}`, class: "chart", role: "figure", "aria-label": spec.label });
  const state = { spec, table: false, drawing: null, width: 0 };
  const head = h("div", { class: "chart-head" }, h("h3", null, spec.label), h("span", { class: "grow" }));
  const body = h("div", { class: "chart-body" });
  if (drawn()) {
    const toggle = h("button", { class: "quiet small", type: "button", onclick: () => {
      state.table = !state.table;
      toggle.textContent = state.table ? "Chart" : "Table";
      draw(body, state, true);
    } }, "Table");
    head.append(toggle);
  }
  box.append(head, body);
  box._spec = spec;
  box._renew = (next) => { state.spec = next._spec; draw(body, state, false); };
  box._redraw = () => draw(body, state, true);
  const watch = new ResizeObserver(([entry]) => {
    if (!box.isConnected) { watch.disconnect(); charts.delete(box); return; }
    const width = Math.floor(entry.contentRect.width);
    if (width && width !== state.width) { state.width = width; draw(body, state, false); }
  });
  watch.observe(body);
  charts.add(box);
  return box;
}

/** After a change of theme: canvases do not follow custom properties. */
export function redraw() {
  for (const box of charts) if (box.isConnected) box._redraw(); else charts.delete(box);
}

function draw(body, state, anew) {
  const { spec } = state;
  if (!drawn() || state.table) {
    state.drawing?.destroy();
    state.drawing = null;
    body.replaceChildren(table(spec));
    return;
  }
  if (!state.width) return;
  const data = [spec.at, ...spec.lines.map((line) => line.bars ? line.values.map((value) => value || null) : line.values)];
  if (state.drawing && !anew && state.lines === spec.lines.length) {
    if (state.drawing.width !== state.width) state.drawing.setSize({ width: state.width, height: HEIGHT });
    state.drawing.setData(data);
    return;
  }
  state.drawing?.destroy();
  body.replaceChildren();
  state.lines = spec.lines.length;
  state.drawing = new plot(options(spec, state.width), data, body);
}

function options(spec, width) {
  const paint = getComputedStyle(document.documentElement);
  const colour = (name) => paint.getPropertyValue(name).trim();
  const axis = { stroke: colour("--faint"), grid: { stroke: colour("--grid"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
  return {
    width, height: HEIGHT, cursor: { points: { size: 6 }, drag: { x: false, y: false } }, legend: { live: true },
    scales: { x: { time: true }, y: { range: (u, low, high) => [0, high > 0 ? high * 1.08 : 1] } },
    axes: [{ ...axis, size: 26, values: (u, ticks) => ticks.map((at) => tick(at, spec)) },
           { ...axis, size: 56, incrs: spec.whole ? WHOLE : undefined, values: (u, ticks) => ticks.map((value) => spec.shown(value)) }],
    series: [{ label: "", value: (u, at) => at === null ? "" : moment(at) }, ...spec.lines.map((line) => ({
      label: line.name, stroke: colour(line.colour), width: 1.6, spanGaps: false, points: { show: line.values.filter((value) => value !== null).length <= 40 && !line.bars, size: 4 },
      fill: line.fill ? colour(line.colour) + (line.bars ? "99" : "26") : undefined,
      paths: line.bars ? plot.paths.bars({ size: [0.7, 24] }) : undefined,
      value: (u, value) => value === null ? DASH : spec.shown(value),
    }))],
  };
}

function tick(at, spec) {
  const days = spec.at.length > 1 && spec.at[spec.at.length - 1] - spec.at[0] > 172_800;
  const when = new Date(at * 1_000);
  return days ? `${when.getMonth() + 1}/${when.getDate()}` : clock(at).slice(0, 5);
}

/** The newest steps in which there is anything. */
function table(spec) {
  const rows = spec.at.map((at, place) => [at, ...spec.lines.map((line) => line.values[place])])
    .filter(([, ...values]) => values.some((value) => value)).slice(-TABLE_ROWS).reverse();
  if (!rows.length) return h("p", { class: "muted" }, "Nothing in this time.");
  return h("div", { class: "scroll", tabindex: "0" }, h("table", null,
    h("thead", null, h("tr", null, h("th", null, "Time"), spec.lines.map((line) => h("th", { class: "num" }, line.name)))),
    h("tbody", null, rows.map(([at, ...values]) => h("tr", null, h("td", null, moment(at)),
      values.map((value) => h("td", { class: "num" }, value === null ? DASH : spec.shown(value))))))));
}
