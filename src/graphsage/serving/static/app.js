// The page: loads the map, follows the graph, and connects search, canvas, panel, legend, address and form.

import * as api from "/static/api.js";
import { UNKNOWN, categories, css, numbers, readable } from "/static/colors.js";
import * as link from "/static/link.js";
import { MapView } from "/static/map.js";
import { Names } from "/static/names.js";
import { element, showNode, showTry } from "/static/panel.js";
import { Points } from "/static/points.js";
import { connectSearch } from "/static/search.js";

const $ = (id) => document.getElementById(id);
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const DARK = window.matchMedia("(prefers-color-scheme: dark)");
const WIDE = window.matchMedia("(min-width: 701px)");
const MANY = 30; // entries of the legend before it is cut
const state = { points: null, view: null, names: null, model: null, classes: [], scheme: null, attribute: "", next: 0, epoch: 0,
  chosen: null, awaited: null, only: null, more: false, order: null };

function say(text) {
  $("message").textContent = text;
  $("message").hidden = !text;
}

function trouble(text) {
  if ($("trouble").textContent !== text) $("trouble").textContent = text;
  $("trouble").hidden = !text;
}

async function loadMap() {
  for (;;) {
    try {
      const loaded = await api.points();
      const said = await api.changes(0);
      state.points = new Points(loaded);
      [state.epoch, state.next, state.classes] = [loaded.epoch, 0, said.classes];
      trouble("");
      return;
    } catch (error) {
      const away = error instanceof api.Gone;
      if (!away && error.status !== 503 && error.status !== 429) throw error;
      if (away) trouble("The service does not answer. Trying again …");
      else say("The map is being drawn …");
      await pause(1000);
    }
  }
}

function hover(number, px, py) {
  const tip = $("tip");
  tip.hidden = number < 0;
  if (number < 0) return;
  const name = state.points.ids[number];
  const kind = state.classes[state.points.kind[number]];
  tip.textContent = kind ? `${name} · ${readable(kind)}` : name;
  const room = $("map").clientWidth;
  tip.style.left = `${Math.min(px + 14, Math.max(0, room - tip.offsetWidth - 6))}px`;
  tip.style.top = `${py + 14}px`;
}

async function choose(id, fly = true) {
  state.chosen = id;
  const { points, view } = state;
  const number = points.place.get(id);
  if (number !== undefined && view) {
    view.mark({ chosen: [number] });
    if (fly) view.show(number);
  }
  remember();
  for (const name of ["back", "copy"]) $(name).hidden = false;
  $("surprise").textContent = "Another node";
  try {
    const likely = state.model.recommends ? api.recommend({ id }).catch(() => null) : null;
    const [node, near, links] = await Promise.all([api.node(id), api.nearest({ id }).catch(() => null), likely]);
    if (state.chosen !== id) return;
    showNode($("details"), node, near, choose, links);
    mark(id, near ? near.results.map((r) => r.id) : [], node.neighbors);
  } catch (error) {
    const said = error.status === 404 ? "There is no such node." : error.message;
    if (state.chosen === id) $("details").replaceChildren(element("h2", { id: "chosen" }, id), element("p", {}, said));
  }
}

function mark(id, near, joined) {
  const of = (names) => names.map((name) => state.points.place.get(name)).filter((i) => i !== undefined);
  state.view?.mark({ chosen: of(id === null ? [] : [id]), near: of(near), joined: of(joined) });
  $("marks").hidden = !state.view;
}

const welcome = $("details").cloneNode(true);

function leave() {
  state.chosen = null;
  state.view?.mark();
  $("marks").hidden = true;
  for (const name of ["back", "copy"]) $(name).hidden = true;
  $("surprise").textContent = "Show me a node";
  $("details").replaceChildren(...[...welcome.cloneNode(true).children]);
  greet();
  remember();
}

function greet() {
  const count = state.points.place.size.toLocaleString("en");
  const groups = state.classes.length ? ` in ${state.classes.length} classes` : "";
  if ($("welcome")) $("welcome").textContent = `${state.model.data ? `${state.model.data}: ` : ""}${count} nodes${groups}`;
  $("map").setAttribute("aria-label", `Map of ${count} nodes${groups}, placed by their embeddings`);
}

async function surprise() {
  const names = [...state.points.place.keys()];
  if (!names.length) return;
  await choose(names[Math.floor(Math.random() * names.length)]);
}

// The coloring

const classScheme = () => {
  const kinds = [];
  for (let i = 0; i < state.points.count; i++) if (state.points.ids[i] !== null) kinds.push(state.points.kind[i]);
  const scheme = categories("Classes", state.classes, kinds, state.order?.length === state.classes.length ? state.order : null);
  state.order = scheme.ranked; // a class keeps its color while nodes come and go
  return { ...scheme, of: (i) => scheme.colorOf(state.points.kind[i]) };
};

const asDate = (day) => new Date(day * 864e5).toISOString().slice(0, 10);

async function attributeScheme(name) {
  const said = await api.values(name);
  const at = new Map(said.ids ? said.ids.map((id, i) => [id, i]) : []);
  const value = (i) => said.values[at.get(state.points.ids[i])] ?? null;
  const scheme = said.type === "category"
    ? categories(name, said.names, said.values.map((v) => (v === null ? UNKNOWN : v)))
    : numbers(name, said.values, said.type === "date" ? asDate : (v) => String(Math.round(v * 1000) / 1000));
  const none = said.type === "category" ? UNKNOWN : null;
  return { ...scheme, of: (i) => scheme.colorOf(value(i) ?? none) };
}

async function colorBy(name) {
  try {
    state.scheme = name ? await attributeScheme(name) : classScheme();
    state.attribute = name;
  } catch (error) {
    $("color-by").value = state.attribute;
    $("scale-note").textContent = error.message;
    $("scale-note").hidden = false;
    return;
  }
  [state.only, state.more] = [null, false];
  $("color-by").value = name;
  recolor();
  remember();
}

function recolor() {
  const { points, scheme, view } = state;
  points.paint(scheme.of);
  if (view) {
    view.palette = scheme.palette;
    view.repaint();
  }
  legend();
  fade();
  label();
}

function label() {
  if (!state.names) return;
  const byClass = state.attribute === "";
  state.names.set(state.points, state.classes, (number) => byClass && state.scheme.palette(state.scheme.colorOf(number), DARK.matches));
  state.view.draw();
}

function legend() {
  const { scheme } = state;
  const dark = DARK.matches;
  $("legend-title").textContent = scheme.title;
  const dot = (place) => element("span", { class: "dot", style: { background: css(scheme.palette(place, dark)) } });
  const line = (place, name, count) => element("li", {}, element("button",
    { type: "button", "aria-pressed": String(state.only === place), onclick: () => single(place) },
    dot(place), element("span", {}, readable(name)), element("small", {}, count.toLocaleString("en"))));
  const items = [];
  if (!scheme.numeric) {
    const shown = state.more ? scheme.order : scheme.order.slice(0, MANY);
    shown.forEach((number, place) => items.push(line(place, scheme.names[number], scheme.counts[number])));
    if (shown.length < scheme.order.length) {
      items.push(element("li", {}, element("button", { type: "button", onclick: () => { state.more = true; legend(); } },
        `${scheme.order.length - shown.length} more …`)));
    }
    if (scheme.others) items.push(element("li", { class: "note" }, `${scheme.others} smaller ones are gray`));
  }
  if (scheme.unknown) items.push(line(UNKNOWN, "unknown", scheme.unknown));
  $("legend").replaceChildren(...items);
  $("ramp").hidden = !scheme.numeric;
  if (scheme.numeric) {
    const stops = [0, 0.25, 0.5, 0.75, 1].map((share) => css(scheme.palette(Math.round(share * 249), dark)));
    $("ramp").style.setProperty("--ramp", `linear-gradient(to right, ${stops.join(", ")})`);
    scheme.ends.forEach((text, i) => { $("ramp").children[i].textContent = text; });
  }
  $("scale-note").hidden = !scheme.numeric;
  if (scheme.numeric) $("scale-note").textContent = "least, median and largest; colors follow the rank";
  $("classes").hidden = !state.classes.length && $("color-by").options.length < 2;
}

// Show one color; the others fade. Once more shows all.
function single(place) {
  state.only = state.only === place ? null : place;
  legend();
  fade();
  remember();
}

function fade() {
  const { points, only } = state;
  for (let i = 0; i < points.count; i++) {
    points.shown[i] = points.ids[i] === null ? 0 : only === null || points.color[i] === only ? 1 : 0.5;
  }
  state.view?.refresh();
}

async function offerColors() {
  const said = await api.attributes().catch(() => ({ attributes: [] }));
  const offered = [["", "class"], ...said.attributes.map((each) => [each.name, each.name])];
  $("color-by").replaceChildren(...offered.map(([value, text]) => element("option", { value }, text)));
  $("color-by").value = state.attribute;
  legend();
}

// The address

let later = 0;

function remember() {
  clearTimeout(later);
  later = setTimeout(() => link.write(state.view, { node: state.chosen, color: state.attribute,
    only: state.only === null ? null : String(state.only) }), 250);
}

async function restore() {
  clearTimeout(later);
  const wanted = link.read();
  if ((wanted.color || "") !== state.attribute) await colorBy(wanted.color || "");
  const only = wanted.only === null ? NaN : Number(wanted.only);
  const known = !state.scheme.numeric && (state.scheme.order[only] !== undefined || only === UNKNOWN);
  if ((known ? only : null) !== state.only) single(known ? only : state.only);
  if (wanted.node) await choose(wanted.node, !wanted.at);
  else if (state.chosen !== null) leave();
  if (wanted.at) state.view?.go(wanted.at);
}

// The graph, as it changes

async function follow() {
  for (;;) {
    await pause(document.hidden ? 5000 : 1000);
    try {
      await poll();
      trouble("");
    } catch (error) {
      $("count-rate").textContent = "–";
      const since = state.seen ? ` The map is that of ${state.seen.toLocaleTimeString()}.` : "";
      trouble(error instanceof api.Gone ? `The service does not answer.${since} Trying again …` : `The service refuses: ${error.message}`);
    }
  }
}

async function poll() {
  const [stats, said] = await Promise.all([api.stats(), api.changes(state.next)]);
  state.seen = new Date();
  $("count-nodes").textContent = stats.nodes.toLocaleString("en");
  $("count-rate").textContent = stats.requests_per_second.toFixed(1);
  $("count-p99").textContent = stats.p99_ms === null ? "–" : stats.p99_ms.toFixed(1);
  $("generation").textContent = `${stats.graph.generation}, change ${stats.graph.sequence}`;
  $("model").textContent = stats.model;
  const layout = { pca: "principal components", tsne: "t-SNE" };
  $("layout").textContent = layout[said.method] + (said.coming ? `; ${layout[said.coming]} is being computed …` : "");
  if (said.epoch !== state.epoch) return reload();
  for (const point of said.changes) {
    if (point.gone) state.points.remove(point.id);
    else state.points.put(point.id, point.x, point.y, point.color);
  }
  state.next = said.next;
  if (said.changes.length) {
    fade();
    label();
  }
  if (state.awaited !== null && state.points.place.has(state.awaited)) {
    const landed = state.awaited;
    state.awaited = null;
    $("added").textContent = `${landed} has landed.`;
    await choose(landed);
  }
}

async function reload() {
  await loadMap();
  if (state.view) state.view.points = state.points;
  if (state.attribute === "") state.scheme = classScheme();
  recolor();
  if (state.chosen !== null) await choose(state.chosen, false);
  else greet();
}

// New nodes

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
      const guess = state.model.classes.length + state.model.targets.length ? (await api.predict(node)).results[0] : null;
      const near = await api.nearest({ node });
      const links = state.model.recommends ? await api.recommend({ node }) : null;
      state.chosen = null;
      showTry($("details"), guess, near, choose, links);
      mark(null, near.results.map((r) => r.id), []);
      $("back").hidden = false;
      $("added").textContent = "Not stored; see above.";
    }
  } catch (error) {
    $("added").textContent = error.message;
  }
}

function drawMap() {
  const pick = (number) => (number >= 0 ? choose(state.points.ids[number], false) : leave());
  try {
    state.view = new MapView($("map"), state.points, hover, pick);
  } catch (error) {
    $("map").hidden = true;
    $("zoom-in").parentElement.hidden = true;
    say("The map needs WebGL, which this browser does not have or has switched off. Search and the lists of nodes work without it.");
    return;
  }
  $("map").addEventListener("webglcontextlost", () => say("The graphics driver gave up. Load the page again."));
  state.names = new Names($("names"));
  state.view.onDraw = (view) => {
    state.names.draw(view);
    remember();
  };
  $("zoom-in").addEventListener("click", () => state.view.zoomBy(1.5));
  $("zoom-out").addEventListener("click", () => state.view.zoomBy(1 / 1.5));
  $("zoom-all").addEventListener("click", () => state.view.showAll());
  say("");
}

function shortcuts(event) {
  const typing = event.target.closest("input, textarea, select");
  if (event.key === "/" && !typing) {
    event.preventDefault();
    $("search").focus();
  }
  if (event.key === "Escape" && !typing && event.target !== $("map") && state.chosen !== null) leave();
}

async function copy() {
  link.write(state.view, { node: state.chosen, color: state.attribute, only: state.only === null ? null : String(state.only) });
  const copied = await navigator.clipboard?.writeText(window.location.href).then(() => true, () => false);
  $("copy").textContent = copied ? "Copied" : "The address is the link";
  setTimeout(() => { $("copy").textContent = "Copy link"; }, 2000);
}

async function start() {
  const wanted = window.location.hash;
  $("classes").open = WIDE.matches;
  await loadMap();
  state.model = await api.model();
  form(state.model);
  drawMap();
  state.scheme = classScheme();
  recolor();
  greet();
  await offerColors();
  DARK.addEventListener("change", () => { legend(); label(); });
  $("color-by").addEventListener("change", (event) => colorBy(event.target.value));
  $("surprise").addEventListener("click", surprise);
  $("back").addEventListener("click", () => { leave(); state.view?.showAll(); });
  $("copy").addEventListener("click", copy);
  document.addEventListener("keydown", shortcuts);
  window.addEventListener("hashchange", restore);
  connectSearch($("search"), $("matches"), $("no-match"), (text) => state.points.matching(text), api.find, choose);
  if (wanted) {
    window.history.replaceState(null, "", wanted);
    await restore();
  }
  window.graphsageMap = state; // for tests and the curious
  await poll();
  follow();
}

start().catch((error) => say(`The map cannot be shown: ${error.message}`));
