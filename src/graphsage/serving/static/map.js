// The canvas: draws points and lines with regl, and turns pointers, wheels and keys into places.

const PALETTE = 256;

export function color(number, dark) {
  if (number >= 65535) return dark ? [0.55, 0.6, 0.63] : [0.5, 0.54, 0.57];
  const hue = (number * 137.508) % 360;
  const light = (dark ? 62 : 44) + ((number % 3) - 1) * 8;
  return hsl(hue, 62, light);
}

function hsl(h, s, l) {
  const a = (s / 100) * Math.min(l / 100, 1 - l / 100);
  const part = (n) => {
    const k = (n + h / 30) % 12;
    return l / 100 - a * Math.max(-1, Math.min(k - 3, 9 - k, 1));
  };
  return [part(0), part(8), part(4)];
}

export class MapView {
  constructor(canvas, points, onHover, onPick) {
    this.canvas = canvas;
    this.points = points;
    this.onHover = onHover;
    this.onPick = onPick;
    this.center = [0, 0];
    this.zoom = 0.8;
    this.marked = [];
    this.lines = [];
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
    this.palette = regl.texture({ width: PALETTE, height: 1, min: "nearest", mag: "nearest" });
    this.buffers = { xy: regl.buffer(4), color: regl.buffer(4), shown: regl.buffer(4) };
    const uniforms = { center: regl.prop("center"), scale: regl.prop("scale"), size: regl.prop("size"),
      palette: this.palette, alpha: regl.prop("alpha") };
    const vert = `precision highp float;
      attribute vec2 xy; attribute float color, shown;
      uniform vec2 center, scale; uniform float size; varying float number, seen;
      void main() {
        gl_Position = vec4((xy - center) * scale, 0.0, 1.0);
        gl_PointSize = shown > 0.0 ? size * (shown < 1.0 ? 0.6 : 1.0) : 0.0; number = color; seen = shown; }`;
    const frag = `precision highp float;
      varying float number, seen; uniform sampler2D palette; uniform float alpha;
      void main() {
        float r = length(gl_PointCoord - 0.5);
        if (r > 0.5 || seen <= 0.0) discard;
        float at = number >= 65535.0 ? 255.0 : mod(number, 255.0);
        vec3 c = texture2D(palette, vec2((at + 0.5) / 256.0, 0.5)).rgb;
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
      const [r, g, b] = color(i === PALETTE - 1 ? 65535 : i, this.dark.matches);
      data.set([r * 255, g * 255, b * 255, 255], i * 4);
    }
    this.palette({ width: PALETTE, height: 1, data, min: "nearest", mag: "nearest" });
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

  // Emphasize points, the first of them most, with lines from it to those in `joined`.
  mark(numbers, joined = []) {
    const xy = this.points.xy;
    this.marked = numbers;
    this.lines = joined.flatMap((i) => [[xy[2 * numbers[0]], xy[2 * numbers[0] + 1]], [xy[2 * i], xy[2 * i + 1]]]);
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
    const dark = this.dark.matches;
    this.regl.clear({ color: dark ? [0.063, 0.075, 0.082, 1] : [0.953, 0.957, 0.957, 1] });
    const at = { center: this.center, scale: this.scale };
    const many = this.points.count > 50000 ? 0.7 : 1;
    const size = Math.min(12, Math.max(2, 3.4 * many * Math.sqrt(this.zoom))) * ratio;
    this.drawPoints({ ...at, ...this.buffers, size, alpha: 0.82, count: this.points.count });
    if (this.lines.length) {
      const ink = dark ? [0.4, 0.4, 0.4, 0.4] : [0.16, 0.16, 0.16, 0.35];
      this.drawLines({ ...at, xy: this.lines, ink, count: this.lines.length });
    }
    if (this.marked.length) {
      const of = (numbers) => ({ xy: numbers.map((i) => [this.points.xy[2 * i], this.points.xy[2 * i + 1]]),
        color: numbers.map((i) => this.points.color[i]), shown: numbers.map(() => 1), count: numbers.length });
      this.drawPoints({ ...at, ...of(this.marked), size: size + 5 * ratio, alpha: 1 });
      const ring = { ...of(this.marked.slice(0, 1)), color: [65535] };
      this.drawPoints({ ...at, ...ring, size: size + 14 * ratio, alpha: 1 });
      this.drawPoints({ ...at, ...of(this.marked.slice(0, 1)), size: size + 9 * ratio, alpha: 1 });
    }
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

  showAll() {
    this.center = [0, 0];
    this.zoom = 0.8;
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
        0: () => this.showAll(), Enter: () => this.onPick(this.at(w / 2, h / 2, Math.max(w, h) / 4)) }[event.key];
      if (does) {
        event.preventDefault();
        does();
      }
    });
  }
}
