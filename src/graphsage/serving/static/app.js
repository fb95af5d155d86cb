// The page: loads the map, follows the graph, and connects search, canvas, panel and form.

import * as api from "/static/api.js";
import { color, MapView } from "/static/map.js";
import { element, showNode, showTry } from "/static/panel.js";
import { Points } from "/static/points.js";
import { connectSearch } from "/static/search.js";

const $ = (id) => document.getElementById(id);
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const state = { points: null, view: null, model: null, next: 0, epoch: 0, chosen: null, awaited: null, only: null };

function say(text) {
  $("message").textContent = text;
  $("message").hidden = !text;
}

async function loadMap() {
  for (;;) {
    try {
      const loaded = await api.points();
      const said = await api.changes(0);
      state.points = new Points(loaded);
      [state.epoch, state.next] = [loaded.epoch, 0];
      legend(said.classes);
      return;
    } catch (error) {
      if (error.status !== 503 && error.status !== 429) throw error;
      say("The map is being drawn …");
      await pause(1000);
    }
  }
}

function hover(number, px, py) {
  const tip = $("tip");
  tip.hidden = number < 0;
  if (number < 0) return;
  const name = state.points.ids[number];
  const kind = state.classes[state.points.color[number]];
  tip.textContent = kind ? `${name} · ${kind}` : name;
  const room = $("map").clientWidth;
  tip.style.left = `${Math.min(px + 14, Math.max(0, room - tip.offsetWidth - 6))}px`;
  tip.style.top = `${py + 14}px`;
}

async function choose(id, fly = true) {
  state.chosen = id;
  const number = state.points.place.get(id);
  if (number !== undefined) {
    state.view.mark([number]);
    if (fly) state.view.show(number);
  }
  try {
    const [node, near] = await Promise.all([api.node(id), api.nearest({ id }).catch(() => null)]);
    if (state.chosen !== id) return;
    showNode($("details"), node, near, choose);
    const of = (names) => names.map((name) => state.points.place.get(name)).filter((i) => i !== undefined);
    if (number !== undefined) {
      const joined = of(node.neighbors);
      state.view.mark([number, ...joined, ...of(near ? near.results.map((r) => r.id) : [])], joined);
    }
  } catch (error) {
    $("details").replaceChildren(element("h2", {}, id), element("p", {}, error.message));
  }
}

function legend(classes) {
  state.classes = classes;
  const dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
  const items = classes.map((name, number) => {
    const [r, g, b] = color(number, dark).map((v) => Math.round(v * 255));
    const button = element("button", { type: "button", "aria-pressed": "false", onclick: () => single(number) },
      element("span", { class: "dot", style: { background: `rgb(${r} ${g} ${b})` } }), name);
    return element("li", {}, button);
  });
  $("legend").replaceChildren(...items);
  $("classes").hidden = !classes.length;
}

// Show one class; the others fade. Once more shows all.
function single(number) {
  state.only = state.only === number ? null : number;
  document.querySelectorAll("#legend button").forEach((button, i) =>
    button.setAttribute("aria-pressed", String(i === state.only)));
  fade();
}

function fade() {
  const { points, only } = state;
  for (let i = 0; i < points.count; i++) {
    points.shown[i] = points.ids[i] === null ? 0 : only === null || points.color[i] === only ? 1 : 0.5;
  }
  state.view.refresh();
}

async function follow() {
  for (;;) {
    await pause(document.hidden ? 5000 : 1000);
    try {
      await poll();
    } catch (error) {
      $("count-rate").textContent = "–"; // the service is away: try again
    }
  }
}

async function poll() {
  const [stats, said] = await Promise.all([api.stats(), api.changes(state.next)]);
  $("count-nodes").textContent = stats.nodes.toLocaleString("en");
  $("count-rate").textContent = stats.requests_per_second.toFixed(1);
  $("count-p99").textContent = stats.p99_ms === null ? "–" : stats.p99_ms.toFixed(1);
  $("generation").textContent = `${stats.graph.generation}, change ${stats.graph.sequence}`;
  $("model").textContent = stats.model;
  if (said.epoch !== state.epoch) {
    await loadMap();
    state.view.points = state.points;
    return fade();
  }
  for (const point of said.changes) {
    if (point.gone) state.points.remove(point.id);
    else state.points.put(point.id, point.x, point.y, point.color);
  }
  state.next = said.next;
  if (said.changes.length) fade();
  if (state.awaited !== null && state.points.place.has(state.awaited)) {
    const landed = state.awaited;
    state.awaited = null;
    $("added").textContent = `${landed} has landed.`;
    await choose(landed);
  }
}

function form(model) {
  const fields = model.columns.map((name) =>
    element("label", {}, name, element("textarea", { name: `column ${name}`, rows: "3" })));
  if (!model.columns.length) {
    fields.push(element("label", {}, `${model.features} features, separated by commas`,
      element("textarea", { name: "features", rows: "3" })));
  }
  $("columns").replaceChildren(...fields);
  $("add").addEventListener("submit", submit);
}

async function submit(event) {
  event.preventDefault();
  const data = new FormData($("add"));
  const node = { id: data.get("id").trim(), edges: data.get("edges").split(",").map((s) => s.trim()).filter(Boolean) };
  if (state.model.columns.length) {
    node.attributes = Object.fromEntries(state.model.columns.map((name) => [name, data.get(`column ${name}`) || null]));
  } else {
    node.features = data.get("features").split(",").map(Number);
  }
  const storing = !event.submitter || event.submitter.value === "add";
  $("added").textContent = storing ? "Adding …" : "Looking …";
  try {
    if (storing) {
      await api.put(node);
      state.awaited = node.id;
      $("added").textContent = "Stored; it lands in a moment.";
    } else {
      const guess = state.model.classes.length ? (await api.predict(node)).results[0] : null;
      const near = await api.nearest({ node });
      state.chosen = null;
      showTry($("details"), guess, near, choose);
      const numbers = near.results.map((r) => state.points.place.get(r.id)).filter((i) => i !== undefined);
      if (numbers.length) state.view.mark(numbers);
      $("added").textContent = "Not stored; see above.";
    }
  } catch (error) {
    $("added").textContent = error.message;
  }
}

async function start() {
  state.model = await api.model();
  form(state.model);
  await loadMap();
  state.view = new MapView($("map"), state.points, hover, (number) => number >= 0 && choose(state.points.ids[number], false));
  $("zoom-in").addEventListener("click", () => state.view.zoomBy(1.5));
  $("zoom-out").addEventListener("click", () => state.view.zoomBy(1 / 1.5));
  $("zoom-all").addEventListener("click", () => state.view.showAll());
  connectSearch($("search"), $("matches"), (text) => state.points.matching(text), choose);
  say("");
  window.graphsageMap = state; // for tests and the curious
  await poll();
  follow();
}

start().catch((error) => say(`The map cannot be shown: ${error.message}`));
