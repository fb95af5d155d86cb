// The view in the address, so that a link shows it again: the place, the chosen node, the coloring, the class shown alone.

export function write(view, state) {
  const parts = new URLSearchParams();
  if (view) parts.set("at", [view.center[0].toFixed(4), view.center[1].toFixed(4), view.zoom.toFixed(3)].join(","));
  for (const name of ["node", "color", "only"]) if (state[name]) parts.set(name, state[name]);
  const wanted = `#${parts}`;
  if (wanted !== window.location.hash) window.history.replaceState(null, "", wanted);
}

export function read() {
  const parts = new URLSearchParams(window.location.hash.slice(1));
  const at = (parts.get("at") || "").split(",").map(Number);
  const usable = at.length === 3 && at.every(Number.isFinite) && at[2] > 0;
  return { at: usable ? at : null, node: parts.get("node"), color: parts.get("color"), only: parts.get("only") };
}
