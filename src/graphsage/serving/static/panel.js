// What is said about a node. Everything is set as text: nothing that a node is called can be markup.

import { readable } from "/static/colors.js";

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") made.addEventListener("click", value);
    else if (name === "style") Object.entries(value).forEach(([key, to]) => made.style.setProperty(key, to));
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function bars(prediction) {
  if (prediction.values) return attributes(prediction.values);
  const best = Object.entries(prediction.probabilities).slice(0, 6);
  return element("ul", { class: "bars" }, ...best.map(([name, p]) =>
    element("li", { style: { "--share": `${(p * 100).toFixed(1)}%` } },
      element("span", {}, readable(name)), element("span", {}, `${(p * 100).toFixed(1)} %`))));
}

function chips(names, choose, notes = []) {
  return element("div", { class: "chips" }, ...names.map((name, i) =>
    element("button", { type: "button", title: notes[i] || "", onclick: () => choose(name) }, name)));
}

function attributes(said) {
  const list = element("dl", { class: "attributes" });
  for (const [name, value] of Object.entries(said)) {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    list.append(element("dt", {}, name), element("dd", {}, text));
  }
  return list;
}

function heading(text, sign) {
  return element("h3", {}, element("span", { class: `sign ${sign}`, "aria-hidden": "true" }), text);
}

function suggested(links, choose) {
  return [element("h3", {}, "Suggested links"),
    chips(links.results.map((r) => r.id), choose, links.results.map((r) => `score ${r.score.toFixed(3)}`))];
}

export function showNode(place, node, near, choose, links = null) {
  const label = [node.label || []].flat().map(readable).join(", ");
  const parts = [element("h2", { id: "chosen" }, node.id)];
  if (label) parts.push(element("p", {}, `Class: ${label}`));
  const known = Object.entries(node.targets || {}).filter(([, value]) => value !== null);
  if (known.length) parts.push(element("p", {}, known.map(([name, value]) => `${name}: ${value}`).join(", ")));
  if (node.prediction) parts.push(element("h3", {}, "Prediction"), bars(node.prediction));
  if (near) parts.push(heading("Nearest by embedding", "near"),
    chips(near.results.map((r) => r.id), choose, near.results.map((r) => `cosine ${r.cosine.toFixed(3)}`)));
  if (links) parts.push(...suggested(links, choose));
  const more = node.degree > node.neighbors.length ? `, ${node.neighbors.length} shown` : "";
  parts.push(heading(`Neighbors (${node.degree}${more})`, "joined"), chips(node.neighbors, choose));
  if (Object.keys(node.attributes).length) parts.push(element("h3", {}, "Attributes"), attributes(node.attributes));
  place.replaceChildren(...parts);
}

export function showTry(place, prediction, near, choose, links = null) {
  const parts = [element("h2", { id: "chosen" }, "A node that is not stored")];
  if (prediction) parts.push(element("h3", {}, "Prediction"), bars(prediction));
  parts.push(heading("Nearest by embedding", "near"),
    chips(near.results.map((r) => r.id), choose, near.results.map((r) => `cosine ${r.cosine.toFixed(3)}`)));
  if (links) parts.push(...suggested(links, choose));
  place.replaceChildren(...parts);
}
