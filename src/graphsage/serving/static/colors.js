// What the points' colors mean: a class, a category of an attribute, or the rank of a number.

export const UNKNOWN = 65535;
const MOST = 250; // categories with a color of their own
const HUES = [217, 36, 355, 142, 268, 188, 20, 322, 75, 205, 165, 295, 50, 120, 240, 340, 28, 96, 310, 200];
const RAMP = {
  light: ["#2a1a9c", "#7e22b0", "#c93b78", "#e0682f", "#b88a00"],
  dark: ["#6f7cf0", "#3fa7d6", "#4fc79e", "#b5dd6b", "#fde94f"],
};

// Color of the category with this rank by size.
export function category(rank, dark) {
  if (rank < 0 || rank >= MOST) return dark ? [0.55, 0.6, 0.63] : [0.5, 0.54, 0.57];
  const hue = rank < HUES.length ? HUES[rank] : (rank * 137.508) % 360;
  return hsl(hue, dark ? 70 : 68, (dark ? 64 : 46) + ((rank % 3) - 1) * 6);
}

// Color of a share between 0 and 1.
export function ramp(share, dark) {
  const stops = RAMP[dark ? "dark" : "light"].map((hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255));
  const at = share * (stops.length - 1);
  const low = Math.min(Math.floor(at), stops.length - 2);
  return stops[low].map((v, i) => v + (stops[low + 1][i] - v) * (at - low));
}

export const css = (rgb) => `rgb(${rgb.map((v) => Math.round(v * 255)).join(" ")})`;

function hsl(h, s, l) {
  const a = (s / 100) * Math.min(l / 100, 1 - l / 100);
  const part = (n) => {
    const k = (n + h / 30) % 12;
    return l / 100 - a * Math.max(-1, Math.min(k - 3, 9 - k, 1));
  };
  return [part(0), part(8), part(4)];
}

// Categories by size, or in a given order. `colorOf` gives the color number of a category's number: its rank.
export function categories(title, names, numbers, order = null) {
  const counts = names.map(() => 0);
  let unknown = 0;
  for (const number of numbers) {
    if (number < names.length) counts[number]++;
    else unknown++;
  }
  order ??= names.map((_, i) => i).sort((a, b) => counts[b] - counts[a] || a - b);
  const rank = new Array(names.length);
  order.forEach((number, place) => { rank[number] = place; });
  return {
    title, numeric: false, ranked: order, order: order.slice(0, MOST), names, counts, unknown, others: Math.max(0, names.length - MOST),
    colorOf: (number) => (rank[number] < MOST ? rank[number] : UNKNOWN),
    palette: category,
  };
}

// Numbers by rank, so that a few large ones leave the others distinct. `text` writes a number.
export function numbers(title, values, text) {
  const known = Float64Array.from(values.filter((v) => v !== null)).sort();
  const share = (value) => {
    let [low, high] = [0, known.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (known[middle] < value) low = middle + 1;
      else high = middle;
    }
    return low / Math.max(1, known.length - 1);
  };
  const at = (part) => (known.length ? text(known[Math.round(part * (known.length - 1))]) : "–");
  return {
    title, numeric: true, ends: [at(0), at(0.5), at(1)], unknown: values.length - known.length,
    colorOf: (value) => (value === null || value === undefined ? UNKNOWN : Math.round(share(value) * (MOST - 1))),
    palette: (place, dark) => (place < MOST ? ramp(place / (MOST - 1), dark) : category(-1, dark)),
  };
}

const SMALL = new Set(["AND", "OF", "THE", "WITH", "IN", "OR", "FOR", "TO", "A", "AN", "ON"]);

// A long name in capitals only, in mixed case; others as they are.
export function readable(name) {
  if (name.length < 12 || !name.includes(" ") || /\p{Ll}/u.test(name)) return name;
  return name.replace(/[\p{Lu}']+/gu, (word, at) =>
    at && SMALL.has(word) ? word.toLowerCase() : /[AEIOUY]/.test(word) ? word[0] + word.slice(1).toLowerCase() : word);
}
