// The search box: a combobox that the keyboard can use. Names match at once; texts are looked up a moment later.

import { element } from "/static/panel.js";

// `matching(text)` gives names; `find(text)` promises { results: [{ id, text }], matches, complete } of nodes whose attributes
// contain the text.
export function connectSearch(input, list, note, matching, find, choose) {
  let found = [];
  let active = -1;
  let timer = 0;
  let rest = ""; // what is not shown

  const show = () => {
    list.replaceChildren(...found.map(({ id, text }, i) => element("li", { role: "option", id: `match-${i}`,
      "aria-selected": String(i === active), onclick: () => pick(id) },
    element("span", {}, id), ...(text ? [element("small", {}, text)] : []))));
    if (rest) list.append(element("li", { role: "option", "aria-disabled": "true", class: "note" }, rest));
    list.hidden = !found.length && !rest;
    input.setAttribute("aria-expanded", String(!list.hidden));
    if (active >= 0) {
      input.setAttribute("aria-activedescendant", `match-${active}`);
      list.children[active].scrollIntoView({ block: "nearest" });
    } else {
      input.removeAttribute("aria-activedescendant");
    }
  };
  const close = () => {
    clearTimeout(timer);
    [found, active, rest] = [[], -1, ""];
    note.textContent = "";
    show();
  };
  const pick = (name) => {
    input.value = name;
    close();
    choose(name);
  };
  const look = async (text) => {
    const said = await find(text).catch((error) => ({ results: [], matches: 0, complete: true, failed: error.message }));
    if (input.value.trim() !== text || document.activeElement !== input) return;
    const known = new Set(found.map((each) => each.id));
    found = [...found, ...said.results.filter((each) => !known.has(each.id))];
    const count = said.matches.toLocaleString("en");
    if (said.matches > said.results.length) rest = `${count} nodes have this text; ${said.results.length} are shown`;
    if (!said.complete) rest = `The search ran out of time; ${count} nodes with this text were found`;
    if (said.failed) rest = `The texts were not searched: ${said.failed}`;
    if (!found.length && !rest) note.textContent = `No match: no node has “${text}” in its name or its text.`;
    show();
  };

  input.addEventListener("input", () => {
    clearTimeout(timer);
    const text = input.value.trim();
    [found, active, rest] = [text ? matching(text).map((id) => ({ id })) : [], -1, ""];
    note.textContent = "";
    show();
    if (text) timer = setTimeout(look, 250, text);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return close();
    if (event.key === "Enter" && found.length) return pick(found[Math.max(active, 0)].id);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && found.length) {
      event.preventDefault();
      active = active < 0 && step < 0 ? found.length - 1 : (active + step + found.length) % found.length;
      show();
    }
  });
  input.addEventListener("blur", () => setTimeout(close, 200));
}
