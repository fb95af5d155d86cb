// All points: where they are, which is near a place, which names match. Grows without being built anew.

const CELLS = 256;
const REACH = 1.25; // the map lies within -REACH .. REACH

export class Points {
  constructor({ x, y, color, ids }) {
    const room = Math.max(1024, ids.length * 2);
    this.xy = new Float32Array(room * 2);
    this.kind = new Float32Array(room); // number of the class
    this.color = new Float32Array(room); // number of the color
    this.colorOf = (i) => this.kind[i];
    this.shown = new Float32Array(room).fill(1);
    this.ids = [];
    this.place = new Map();
    this.cells = new Map();
    for (let i = 0; i < ids.length; i++) this.put(ids[i], x[i], y[i], color[i]);
  }

  get count() {
    return this.ids.length;
  }

  // Add or move a point; its number.
  put(id, x, y, kind) {
    let i = this.place.get(id);
    if (i === undefined) {
      i = this.ids.length;
      if (i >= this.color.length) this.grow();
      this.ids.push(id);
      this.place.set(id, i);
    } else {
      this.leave(i);
    }
    this.xy[2 * i] = x;
    this.xy[2 * i + 1] = y;
    this.kind[i] = kind;
    this.color[i] = this.colorOf(i);
    this.shown[i] = 1;
    const cell = this.cell(x, y);
    if (!this.cells.has(cell)) this.cells.set(cell, []);
    this.cells.get(cell).push(i);
    return i;
  }

  remove(id) {
    const i = this.place.get(id);
    if (i === undefined) return;
    this.leave(i);
    this.place.delete(id);
    this.shown[i] = 0;
    this.ids[i] = null;
  }

  // Color all points by `colorOf(i)`, also those that come later.
  paint(colorOf) {
    this.colorOf = colorOf;
    for (let i = 0; i < this.count; i++) this.color[i] = colorOf(i);
  }

  leave(i) {
    const list = this.cells.get(this.cell(this.xy[2 * i], this.xy[2 * i + 1]));
    if (list) list.splice(list.indexOf(i), 1);
  }

  grow() {
    const bigger = (old, size) => {
      const made = new Float32Array(size);
      made.set(old);
      return made;
    };
    this.xy = bigger(this.xy, this.xy.length * 2);
    this.kind = bigger(this.kind, this.kind.length * 2);
    this.color = bigger(this.color, this.color.length * 2);
    this.shown = bigger(this.shown, this.shown.length * 2);
  }

  cell(x, y) {
    const at = (v) => Math.max(0, Math.min(CELLS - 1, Math.floor(((v + REACH) / (2 * REACH)) * CELLS)));
    return at(x) * CELLS + at(y);
  }

  // The point nearest to a place, at most `reach` away; -1 for none.
  nearest(x, y, reach) {
    const step = (2 * REACH) / CELLS;
    const span = Math.min(CELLS, Math.ceil(reach / step));
    let best = -1;
    let least = reach * reach;
    for (let a = -span; a <= span; a++) {
      for (let b = -span; b <= span; b++) {
        for (const i of this.cells.get(this.cell(x + a * step, y + b * step)) || []) {
          const d = (this.xy[2 * i] - x) ** 2 + (this.xy[2 * i + 1] - y) ** 2;
          if (d < least) [best, least] = [i, d];
        }
      }
    }
    return best;
  }

  // Names that begin with the text, then names that contain it.
  matching(text, most = 12) {
    const wanted = text.toLowerCase();
    const first = [];
    const second = [];
    for (const id of this.place.keys()) {
      const at = id.toLowerCase().indexOf(wanted);
      if (at === 0) first.push(id);
      else if (at > 0 && second.length < most) second.push(id);
      if (first.length > 400) break;
    }
    first.sort((a, b) => a.length - b.length || (a < b ? -1 : 1));
    return [...first, ...second].slice(0, most);
  }
}
