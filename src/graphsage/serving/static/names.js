// Names of the classes, each where its points are densest, the largest first; a name that would cover another is left out.

import { element } from "/static/panel.js";
import { css, readable } from "/static/colors.js";

const MOST = 80;
const CELLS = 48;
const REACH = 1.25;
const NARROW = 500; // pixels
const SHIFTS = [0, -14, 14, -26, 26]; // pixels that a name may be moved by, to be beside others on a wide map

// For each class: its number of points and the middle of its densest part.
export function anchors(points, count) {
  const at = (v) => Math.max(0, Math.min(CELLS - 1, Math.floor(((v + REACH) / (2 * REACH)) * CELLS)));
  const cells = new Map();
  const sizes = new Array(count).fill(0);
  for (let i = 0; i < points.count; i++) {
    const own = points.kind[i];
    if (own >= count || points.ids[i] === null) continue;
    if (!cells.has(own)) cells.set(own, new Map());
    const key = at(points.xy[2 * i]) * CELLS + at(points.xy[2 * i + 1]);
    const cell = cells.get(own).get(key) || [0, 0, 0];
    cells.get(own).set(key, [cell[0] + 1, cell[1] + points.xy[2 * i], cell[2] + points.xy[2 * i + 1]]);
    sizes[own]++;
  }
  const found = [];
  for (const [number, own] of cells) {
    let best = [0, 0, 0];
    for (const key of own.keys()) {
      const sum = [0, 0, 0];
      for (const a of [-CELLS, 0, CELLS]) {
        for (const b of [-1, 0, 1]) (own.get(key + a + b) || []).forEach((v, i) => { sum[i] += v; });
      }
      if (sum[0] > best[0]) best = sum;
    }
    found.push({ number, size: sizes[number], x: best[1] / best[0], y: best[2] / best[0] });
  }
  return found.sort((a, b) => b.size - a.size).slice(0, MOST);
}

export class Names {
  constructor(place) {
    this.place = place;
    this.shown = [];
  }

  // `colorOf(number)` is the color of a class, or null for plain text.
  set(points, names, colorOf) {
    this.shown = anchors(points, names.length).map((each) => {
      const color = colorOf(each.number);
      const label = element("span", {}, readable(names[each.number]));
      if (color) label.style.setProperty("--own", css(color));
      return { ...each, label };
    });
    this.place.replaceChildren(...this.shown.map((each) => each.label));
    const range = document.createRange();
    for (const each of this.shown) {
      range.selectNodeContents(each.label); // a box of several lines is wider than its text
      each.size = [range.getBoundingClientRect().width + 6, each.label.offsetHeight + 2];
      each.width = each.label.offsetWidth;
    }
  }

  draw(view) {
    const taken = [];
    const { clientWidth: width, clientHeight: height } = view.canvas;
    const shifts = width < NARROW ? [0] : SHIFTS;
    for (const { x, y, label, size, width: own } of this.shown) {
      const [px, py] = view.pixel(x, y);
      const left = Math.max(4, Math.min(width - size[0] - 4, px - size[0] / 2));
      const outside = px < 0 || px > width || py < 0 || py > height;
      const box = outside ? undefined : shifts.map((shift) => py + shift - size[1] / 2)
        .map((top) => [left, top, left + size[0], top + size[1]])
        .find((b) => b[1] > 0 && b[3] < height && !taken.some((t) => b[0] < t[2] && b[2] > t[0] && b[1] < t[3] && b[3] > t[1]));
      label.style.visibility = box ? "visible" : "hidden";
      if (!box) continue;
      taken.push(box);
      label.style.transform = `translate(${Math.round(left + (size[0] - own) / 2)}px, ${Math.round(box[1])}px)`;
    }
  }
}
