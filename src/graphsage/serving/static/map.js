// The canvas: draws points and lines with regl, and turns pointers, wheels and keys into places.

import { UNKNOWN, category } from "/static/colors.js";

const PALETTE = 256;
const WHOLE = 0.9; // the zoom that shows everything
const SHAPES = { disc: 0, ring: 1, diamond: 2 };
const INK = {
  light: { chosen: [0.05, 0.07, 0.09], near: [0.0, 0.32, 0.75], joined: [0.75, 0.22, 0.0], back: [0.953, 0.957, 0.957] },
  dark: { chosen: [1, 1, 1], near: [0.45, 0.78, 1], joined: [1, 0.66, 0.3], back: [0.063, 0.075, 0.082] },
};

export class MapView {
  constructor(canvas, points, onHover, onPick) {
    this.canvas = canvas;
    this.points = points;
    this.onHover = onHover;
    this.onPick = onPick;
    this.onDraw = () => {};
    this.center = [0, 0];
    this.zoom = WHOLE;
    this.marks = { chosen: [], near: [], joined: [] };
    this.palette = category;
    this.regl = window.createREGL({ canvas, attributes: { antialias: true, alpha: false } });
    this.dark = window.matchMedia("(prefers-color-scheme: dark)");
    this.dark.addEventListener("change", () => this.repaint());
    this.setup();
    this.repaint();
    new ResizeObserver(() => this.draw()).observe(canvas);
    this.listen();
  }

  setup() {
    const regl = this.regl;
    this.texture = regl.texture({ width: PALETTE, height: 1, min: "nearest", mag: "nearest" });
    this.buffers = { xy: regl.buffer(4), color: regl.buffer(4), shown: regl.buffer(4) };
    const uniforms = { center: regl.prop("center"), scale: regl.prop("scale"), size: regl.prop("size"),
      palette: this.texture, alpha: regl.prop("alpha"), shape: regl.prop("shape"), ink: regl.prop("ink") };
    const vert = `precision highp float;
      attribute vec2 xy; attribute float color, shown;
      uniform vec2 center, scale; uniform float size; varying float number, seen;
      void main() {
        gl_Position = vec4((xy - center) * scale, 0.0, 1.0);
        gl_PointSize = shown > 0.0 ? size * (shown < 1.0 ? 0.6 : 1.0) : 0.0; number = color; seen = shown; }`;
    const frag = `precision highp float;
      varying float number, seen; uniform sampler2D palette; uniform float alpha, shape; uniform vec4 ink;
      void main() {
        vec2 from = abs(gl_PointCoord - 0.5);
        float r = shape > 1.5 ? (from.x + from.y) * 0.98 : length(from);
        if (r > 0.5 || seen <= 0.0) discard;
        if (shape > 0.5) {
          float band = (1.0 - smoothstep(0.44, 0.5, r)) * smoothstep(0.27, 0.33, r);
          gl_FragColor = vec4(ink.rgb, 1.0) * band * ink.a;
          return;
        }
        float at = number >= 65535.0 ? 255.0 : mod(number, 255.0);
        vec3 c = ink.a > 0.0 ? ink.rgb : texture2D(palette, vec2((at + 0.5) / 256.0, 0.5)).rgb;
        float edge = 1.0 - smoothstep(0.40, 0.5, r);
        gl_FragColor = vec4(c, 1.0) * edge * alpha * (seen < 1.0 ? 0.12 : 1.0); }`;
    const blend = { enable: true, func: { src: "one", dst: "one minus src alpha" } };
    this.drawPoints = regl({ vert, frag, uniforms, blend, depth: { enable: false }, primitive: "points",
      attributes: { xy: regl.prop("xy"), color: regl.prop("color"), shown: regl.prop("shown") },
      count: regl.prop("count") });
    this.drawLines = regl({
      vert: `precision highp float; attribute vec2 xy; uniform vec2 center, scale;
        void main() { gl_Position = vec4((xy - center) * scale, 0.0, 1.0); }`,
      frag: "precision highp float; uniform vec4 ink; void main() { gl_FragColor = ink; }",
      uniforms: { center: regl.prop("center"), scale: regl.prop("scale"), ink: regl.prop("ink") },
      blend, depth: { enable: false }, primitive: "lines", attributes: { xy: regl.prop("xy") },
      count: regl.prop("count") });
  }

  repaint() {
    const data = new Uint8Array(PALETTE * 4);
    for (let i = 0; i < PALETTE; i++) {
      const [r, g, b] = this.palette(i === PALETTE - 1 ? UNKNOWN : i, this.dark.matches);
      data.set([r * 255, g * 255, b * 255, 255], i * 4);
    }
    this.texture({ width: PALETTE, height: 1, data, min: "nearest", mag: "nearest" });
    this.refresh();
  }

  // Points came or went.
  refresh() {
    const { xy, color, shown } = this.points;
    this.buffers.xy({ data: xy, usage: "dynamic" });
    this.buffers.color({ data: color, usage: "dynamic" });
    this.buffers.shown({ data: shown, usage: "dynamic" });
    this.draw();
  }

  // Marks: the chosen node, its nearest nodes, and its neighbors, which lines join to it. Other points fade.
  mark({ chosen = [], near = [], joined = [] } = {}) {
    this.marks = { chosen, near, joined };
    this.draw();
  }

  get scale() {
    const { clientWidth: w, clientHeight: h } = this.canvas;
    const least = Math.min(w, h) || 1;
    return [(this.zoom * least) / (w || 1), (this.zoom * least) / (h || 1)];
  }

  draw() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      this.paint();
    });
  }

  paint() {
    const began = performance.now();
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.max(1, Math.round(this.canvas.clientWidth * ratio));
    this.canvas.height = Math.max(1, Math.round(this.canvas.clientHeight * ratio));
    this.regl.poll();
    const ink = INK[this.dark.matches ? "dark" : "light"];
    this.regl.clear({ color: [...ink.back, 1] });
    const at = { center: this.center, scale: this.scale, shape: SHAPES.disc, ink: [0, 0, 0, 0] };
    const many = this.points.count > 50000 ? 0.7 : this.points.count < 2000 ? 1.7 : 1;
    const size = Math.min(14, Math.max(2, 3.4 * many * Math.sqrt(this.zoom))) * ratio;
    const { chosen, near, joined } = this.marks;
    const marked = chosen.length + near.length + joined.length > 0;
    this.drawPoints({ ...at, ...this.buffers, size, alpha: marked ? 0.4 : 0.85, count: this.points.count });
    const { xy, color } = this.points;
    const spot = (i) => [xy[2 * i], xy[2 * i + 1]];
    const of = (list) => ({ xy: list.map(spot), color: list.map((i) => color[i]), shown: list.map(() => 1), count: list.length });
    if (chosen.length && joined.length) {
      const ends = joined.flatMap((i) => [spot(chosen[0]), spot(i)]);
      this.drawLines({ ...at, xy: ends, ink: [...ink.joined.map((v) => v * 0.55), 0.55], count: ends.length });
    }
    const large = Math.max(size, 5 * ratio);
    const draw = (list, more, extra) => list.length && this.drawPoints({ ...at, ...of(list), size: large + more * ratio, alpha: 1, ...extra });
    draw([...joined, ...near], 2, {});
    draw(joined, 13, { shape: SHAPES.diamond, ink: [...ink.joined, 1] });
    draw(near, 9, { shape: SHAPES.ring, ink: [...ink.near, 1] });
    draw(chosen, 18, { ink: [...ink.back, 1] });
    draw(chosen, 18, { shape: SHAPES.ring, ink: [...ink.chosen, 1] });
    draw(chosen, 6, {});
    this.onDraw(this);
    this.frame = performance.now() - began;
  }

  // Canvas pixels to a place, and back.
  place(px, py) {
    const { clientWidth: w, clientHeight: h } = this.canvas;
    const [sx, sy] = this.scale;
    return [this.center[0] + ((px / w) * 2 - 1) / sx, this.center[1] + (1 - (py / h) * 2) / sy];
  }

  pixel(x, y) {
    const { clientWidth: w, clientHeight: h } = this.canvas;
    const [sx, sy] = this.scale;
    return [(((x - this.center[0]) * sx + 1) / 2) * w, ((1 - (y - this.center[1]) * sy) / 2) * h];
  }

  at(px, py, reach = 14) {
    const [x, y] = this.place(px, py);
    const [edge] = this.place(px + reach, py);
    return this.points.nearest(x, y, Math.abs(edge - x));
  }

  zoomBy(factor, px = this.canvas.clientWidth / 2, py = this.canvas.clientHeight / 2) {
    const before = this.place(px, py);
    this.zoom = Math.max(0.4, Math.min(400, this.zoom * factor));
    const after = this.place(px, py);
    this.center = [this.center[0] + before[0] - after[0], this.center[1] + before[1] - after[1]];
    this.draw();
  }

  moveBy(dx, dy) {
    const [x0, y0] = this.place(0, 0);
    const [x1, y1] = this.place(dx, dy);
    this.center = [this.center[0] - (x1 - x0), this.center[1] - (y1 - y0)];
    this.draw();
  }

  show(number, zoom = Math.max(this.zoom, 6)) {
    this.center = [this.points.xy[2 * number], this.points.xy[2 * number + 1]];
    this.zoom = zoom;
    this.draw();
  }

  go([x, y, zoom]) {
    this.center = [x, y];
    this.zoom = Math.max(0.4, Math.min(400, zoom));
    this.draw();
  }

  showAll() {
    this.center = [0, 0];
    this.zoom = WHOLE;
    this.draw();
  }

  listen() {
    const canvas = this.canvas;
    const held = new Map();
    let moved = 0;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      held.set(event.pointerId, [event.offsetX, event.offsetY]);
      moved = 0;
    });
    canvas.addEventListener("pointermove", (event) => {
      const before = held.get(event.pointerId);
      const here = [event.offsetX, event.offsetY];
      if (!before) return this.onHover(this.at(...here), ...here);
      const others = [...held].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
      if (others.length) {
        const far = (at) => Math.hypot(at[0] - others[0][0], at[1] - others[0][1]) || 1;
        this.zoomBy(far(here) / far(before), ...others[0]);
      } else {
        this.moveBy(here[0] - before[0], here[1] - before[1]);
      }
      moved += Math.abs(here[0] - before[0]) + Math.abs(here[1] - before[1]);
      held.set(event.pointerId, here);
    });
    const release = (event) => {
      held.delete(event.pointerId);
      if (event.type === "pointerup" && moved < 5) this.onPick(this.at(event.offsetX, event.offsetY));
    };
    canvas.addEventListener("pointerup", release);
    canvas.addEventListener("pointercancel", release);
    canvas.addEventListener("pointerleave", () => this.onHover(-1, 0, 0));
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoomBy(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), event.offsetX, event.offsetY);
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const { clientWidth: w, clientHeight: h } = canvas;
      const does = { ArrowLeft: () => this.moveBy(w / 10, 0), ArrowRight: () => this.moveBy(-w / 10, 0),
        ArrowUp: () => this.moveBy(0, h / 10), ArrowDown: () => this.moveBy(0, -h / 10),
        "+": () => this.zoomBy(1.4), "=": () => this.zoomBy(1.4), "-": () => this.zoomBy(1 / 1.4),
        0: () => this.showAll(), Escape: () => this.onPick(-1), Enter: () => this.onPick(this.at(w / 2, h / 2, Math.max(w, h) / 4)) }[event.key];
      if (does) {
        event.preventDefault();
        does();
      }
    });
  }
}
