// The search box: a combobox that the keyboard can use.

import { element } from "/static/panel.js";

export function connectSearch(input, list, matching, choose) {
  let names = [];
  let active = -1;

  const show = () => {
    list.replaceChildren(...names.map((name, i) => element("li", { role: "option", id: `match-${i}`,
      "aria-selected": String(i === active), onclick: () => pick(name) }, name)));
    list.hidden = !names.length;
    input.setAttribute("aria-expanded", String(names.length > 0));
    if (active >= 0) input.setAttribute("aria-activedescendant", `match-${active}`);
    else input.removeAttribute("aria-activedescendant");
  };
  const close = () => {
    [names, active] = [[], -1];
    show();
  };
  const pick = (name) => {
    input.value = name;
    close();
    choose(name);
  };

  input.addEventListener("input", () => {
    const text = input.value.trim();
    [names, active] = [text ? matching(text) : [], -1];
    show();
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return close();
    if (event.key === "Enter" && names.length) return pick(names[Math.max(active, 0)]);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && names.length) {
      event.preventDefault();
      active = (active + step + names.length) % names.length;
      show();
    }
  });
  input.addEventListener("blur", () => setTimeout(close, 200));
}
