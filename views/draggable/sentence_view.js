// A sentence in reading order: ribbons from one token, as wide as its attention weights, and a map of all heads.

explain(
  "Choose a word: click it, or press \u2190 and \u2192. Choose a head, one way of looking, on the map, or press \u2191 and \u2193: " +
  "the bluer, the more it gives. All ribbons together are 1 wide; what isn\u2019t needed goes to a token such as [CLS].",
);

const { texts, heads, layers } = data, S = texts[0].length, L = layers.length;
const rows = unpack(data.weights, S); // per text, layer, head and token
const exchanged = texts[0].flatMap((_, i) => (texts.some((text) => text[i] !== texts[0][i]) ? [i] : []));
const nameOf = (text) => exchanged.map((i) => text[i]).join(" ");
const state = { text: 0, before: null, ...data.first, target: 0 };
const row = ({ text, layer, head } = state, token = state.token) => rows[((text * L + layer) * heads + head) * S + token];
const short = (name, most = 16) => (name.length > most ? `${name.slice(0, most - 1)}\u2026` : name);
const quoted = (name) => `\u201c${name}\u201d`;
const MAX_LETTERS = 20, MIN_LETTERS = 14; // pixels

add(document.head, "style", {}, `
  .sentence { width: 100%; }
  .sentence text { stroke: none; }
  .ribbon { pointer-events: none; fill: none; stroke: var(--key); stroke-opacity: 0.32; }
  .ribbon.most { stroke-opacity: 0.8; }
  .ribbon.asks { stroke: var(--query); stroke-opacity: 0.5; }
  .word { cursor: pointer; touch-action: manipulation; -webkit-tap-highlight-color: transparent; }
  .word:focus { outline: none; }
  .word rect { fill: transparent; }
  .word > * { pointer-events: none; }
  .word .room { stroke: none !important; fill: none !important; pointer-events: all; }
  .word:hover rect { fill: var(--faint); }
  .word:focus-visible rect { stroke: var(--mark); stroke-width: 2px; }
  .word.asks rect { fill: color-mix(in srgb, var(--query) 14%, var(--ground, var(--paper))); }
  .word.most rect { fill: color-mix(in srgb, var(--key) 14%, var(--ground, var(--paper))); }
  .word.asks .name { fill: var(--query); }
  .word.most .name { fill: var(--key); }
  .still .swapped { display: none; }
  .still .map select { appearance: none; border: 0; padding: 0; font-weight: bold; }
  .sentence .swapped { stroke: var(--soft); stroke-width: 1.5px; stroke-dasharray: 3 3; }
  .sentence :is(.number, .label) { font-size: var(--small); font-variant-numeric: tabular-nums; }
  .sentence .number { fill: var(--soft); }
  .word.most .number { fill: var(--key); font-weight: bold; }
  .word.asks .number { fill: var(--query); font-weight: bold; }
  .part { fill: color-mix(in srgb, var(--key) 38%, var(--ground, var(--paper))); }
  .part.most { fill: var(--key); }
  .part.asks { fill: color-mix(in srgb, var(--query) 45%, var(--ground, var(--paper))); }
  .sentence .label.most { fill: var(--ground, var(--paper)); font-weight: bold; }
  .below { display: flex; flex-wrap: wrap; gap: 12px 40px; margin-top: 16px; }
  .below > #say { flex: 1 1 300px; margin: 0; font-size: var(--title); min-height: 5.8em; }
  .map { flex: 0 1 auto; min-width: min(100%, 300px); max-width: 100%; }
  .map > label { display: block; contain: inline-size; white-space: normal; margin-bottom: 4px; color: var(--soft); cursor: default; }
  .map > label:hover { background: none; }
  .map select { max-width: 10em; margin-left: 4px; color: var(--key); }
  .heads { display: grid; grid-template-columns: auto repeat(${heads}, minmax(18px, 24px)); gap: 2px; max-width: max-content; padding: 5px;
    font-size: var(--small); line-height: 1; text-align: center; align-items: center; color: var(--soft); }
  .heads .side { padding-right: 4px; text-align: right; }
  .heads .cell { width: 100%; height: auto; aspect-ratio: 1; min-width: 0; min-height: 0; padding: 0; border: 1px solid var(--line); border-radius: 4px;
    cursor: pointer; background: color-mix(in srgb, var(--key) var(--share), var(--ground, var(--paper))); }
  .heads .cell[aria-checked="true"] { position: relative; box-shadow: 0 0 0 2px var(--ground, var(--paper)), 0 0 0 4px var(--query); }
`);

if (texts.length > 1) {
  const names = texts.map(nameOf), controls = add(figure, "div", { class: "controls" });
  choice(controls, "Exchange a word:", names, names[0], (name) => change({ text: names.indexOf(name) }));
}
const drawing = add(figure, "svg", { class: "sentence", role: "radiogroup", "aria-label": "the token that looks" });
const ribbons = texts[0].map(() => add(drawing, "path"));
const parts = texts[0].map(() => add(drawing, "rect", { rx: 3 }));
const labels = texts[0].map(() => add(drawing, "text", { "text-anchor": "middle" }));
const words = texts[0].map((_, i) => {
  const all = add(drawing, "g", { role: "radio" });
  const word = { all, room: add(all, "rect", { class: "room" }), box: add(all, "rect", { rx: 5 }), name: add(all, "text", { class: "name" }) };
  all.append(" "); // between the two texts, for programs that read what is shown
  Object.assign(word, { number: add(all, "text", { class: "number" }), line: add(all, "line", { class: "swapped" }) });
  all.addEventListener("click", () => change({ token: i }));
  return word;
});
const below = add(figure, "div", { class: "below" });
below.append(document.getElementById("say"));
const map = add(below, "div", { class: "map" }), asked = add(map, "label");
const question = add(asked, "span"), target = add(asked, "select");
const grid = add(add(map, "div", { class: "scroll" }), "div", { class: "heads", role: "radiogroup", "aria-label": "the head" });
add(grid, "span", { class: "side", "aria-hidden": true }, "head");
for (let head = 0; head < heads; head++) add(grid, "span", { "aria-hidden": true }, head);
const cells = layers.map((number, layer) => {
  add(grid, "span", { class: "side", "aria-hidden": true }, `${layer ? "" : "layer "}${number}`);
  return Array.from({ length: heads }, (_, head) => {
    const cell = add(grid, "button", { type: "button", class: "cell", role: "radio" });
    cell.addEventListener("click", () => change({ layer, head }));
    return cell;
  });
});
target.addEventListener("change", () => change({ target: target.selectedIndex }));

const best = (shares) => largest(shares.map((share, i) => (i === state.token ? -1 : share)));

function change(chosen) {
  state.before = "text" in chosen ? { ...state, before: null } : null;
  Object.assign(state, chosen);
  if ("token" in chosen || state.target === state.token) state.target = best(row());
  draw();
}

// Pieces and punctuation are nearer to what is before them.
const isNear = (i) => i > 0 && (/^(##.*|[.,;:!?)%\u2019\u2026'-]+)$/.test(texts[0][i]) || /^[(\u2019'-]+$/.test(texts[0][i - 1]));

// Where everything is: on one line if the sentence fits, in a column if not.
let place = null;
const widthNow = () => Math.max(300, figure.clientWidth);
function measure() {
  const width = widthNow();
  const lengths = (size) => words.map(({ name }, i) => {
    set(name, { "font-size": size });
    return Math.max(...texts.map((text) => { name.textContent = short(text[i]); return name.getComputedTextLength(); }));
  });
  for (let size = MAX_LETTERS; size >= MIN_LETTERS; size--) {
    const wide = lengths(size), gaps = wide.map((_, i) => (isNear(i) ? 0.16 : 0.5) * size), total = sum(wide) + sum(gaps);
    if (total > width) continue;
    const rise = Math.max(70, Math.min(170, 0.2 * total)), left = (width - total - gaps[0]) / 2;
    const at = wide.map((length, i) => left + sum(wide.slice(0, i)) + sum(gaps.slice(0, i + 1)) + length / 2);
    return { size, width, wide, at, rise, whole: 48, row: true, height: rise + 100 };
  }
  const wide = lengths(15), rise = Math.round(0.24 * Math.min(width, 520)), step = 27;
  const at = texts[0].map((_, i) => step * (i + 0.5) + 2), bars = rise + Math.max(...wide) + 24;
  return { size: 15, width, wide, at, rise, whole: 38, row: false, height: step * S + 4, bars, most: Math.min(width, 640) - bars - 40 };
}

function draw() {
  place = measure();
  const shares = row(), { size, width, height } = place, strongest = best(shares), names = texts[state.text];
  set(drawing, { viewBox: `0 0 ${width} ${height}`, "data-whole": place.whole });
  words.forEach(({ all, name, line }, i) => {
    const asks = i === state.token, kind = `${asks ? " asks" : ""}${i === strongest ? " most" : ""}`;
    const drawn = { word: all, ribbon: ribbons[i], part: parts[i], label: labels[i] };
    for (const [each, element] of Object.entries(drawn)) set(element, { class: each + kind, "data-value": shares[i] });
    set(all, { "aria-checked": asks, tabindex: asks ? 0 : -1 });
    name.textContent = short(names[i]);
    const whole = name.textContent === names[i] ? "" : `, ${names[i]}`;
    nameShown(all, `${name.textContent} ${format(shares[i])}`, `${asks ? "to itself" : `from ${names[state.token]}`}${whole}`);
    set(name, { "font-size": size });
    line.style.display = exchanged.includes(i) ? "" : "none";
  });
  const given = cells.flatMap((one, layer) => one.map((cell, head) => {
    const chosen = layer === state.layer && head === state.head, share = row({ ...state, layer, head })[state.target];
    const title = `layer ${layers[layer]}, head ${head}: ${format(share)}`;
    set(cell, { "aria-checked": chosen, tabindex: chosen ? 0 : -1, "data-value": share, "aria-label": title, title });
    return share;
  }));
  question.textContent = `All ${L * heads} heads: what ${quoted(short(names[state.token]))} gives to`;
  target.replaceChildren();
  names.forEach((name, i) => { add(target, "option", {}, short(name)).selected = i === state.target; });
  glide(drawing, [place.at[state.token], ...shares, ...given], ([from, ...numbers]) => {
    put(from, numbers.slice(0, S));
    cells.flat().forEach((cell, i) => cell.style.setProperty("--share", `${100 * numbers[S + i]}%`));
  });
  say(sentence(shares, names));
  document.querySelector("h1").textContent = title(shares, names);
}

// Draw ribbons from a place on the line or in the column, and shares as bars and numbers.
function put(from, shares) {
  const { size, at, wide, rise, whole, width } = place, token = state.token;
  const span = Math.max(...at.map((x) => Math.abs(x - from)), 1);
  const before = at.flatMap((x, i) => (i !== token && x < from ? [i] : [])).reverse(); // the nearest first: they do not cross
  const after = at.flatMap((x, i) => (i !== token && x >= from ? [i] : [])).reverse();
  let start = from - whole / 2, left = 0;
  for (const i of [...before, token, ...after]) {
    const breadth = whole * shares[i], s = start + breadth / 2, t = i === token ? s : at[i];
    const far = (rise / 0.75) * (i === token ? 0.2 : Math.min(1, 0.15 + 0.85 * Math.abs(t - s) / span));
    const point = (along, up) => (place.row ? `${along} ${rise + 4 - up}` : `${rise + 4 - up} ${along}`);
    set(ribbons[i], { d: `M${point(s, 0)}C${point(s, far)} ${point(t, far)} ${point(t, 0)}`, "stroke-width": breadth });
    start += breadth;
  }
  const taken = [];
  for (const i of shares.map((_, i) => i).sort((a, b) => shares[b] - shares[a])) {
    const { room: all, box, name, number, line } = words[i], x = at[i], text = format(shares[i]);
    number.textContent = text;
    if (place.row) {
      const y = rise + 8, room = taken.every((other) => Math.abs(other - x) > 34), end = y + 1.5 * size;
      set(box, { x: x - wide[i] / 2 - 3, y, width: wide[i] + 6, height: 1.5 * size });
      set(all, { x: x - wide[i] / 2 - 0.2 * size, y, width: wide[i] + 0.4 * size, height: end + 22 - y });
      set(name, { x, y: y + 1.08 * size, "text-anchor": "middle" });
      set(number, { x, y: end + 18, "text-anchor": "middle" });
      number.style.visibility = room && shares[i] >= 0.005 ? "" : "hidden";
      if (room) taken.push(x);
      set(line, { x1: x - wide[i] / 2, x2: x + wide[i] / 2, y1: end + 1, y2: end + 1 });
    } else {
      set(box, { x: rise + 6, y: x - 12, width: place.bars - rise - 12, height: 24 });
      set(all, { x: rise + 6, y: x - 13, width: width - rise - 6, height: 26 });
      set(name, { x: rise + 12, y: x + 5, "text-anchor": "start" });
      set(number, { x: place.bars + place.most * shares[i] + 6, y: x + 5, "text-anchor": "start" });
      set(line, { x1: rise + 12, x2: rise + 12 + wide[i], y1: x + 10, y2: x + 10 });
      number.style.visibility = "";
    }
  }
  shares.forEach((share, i) => {
    const name = words[i].name.textContent;
    (place.row ? [`${name} ${format(share)}`, name, ""] : [""]).find((text) => { // the longest that fits
      labels[i].textContent = text;
      return !text || labels[i].getComputedTextLength() <= width * share - 10;
    });
    set(labels[i], { x: left + (width * share) / 2, y: rise + 82 });
    set(parts[i], place.row ? { x: left + 0.5, y: rise + 65, width: Math.max(0, width * share - 1), height: 24 }
      : { x: place.bars, y: at[i] - 6, width: Math.max(1, place.most * share), height: 12 });
    left += width * share;
  });
}

// The same words as in sentence.py.
function title(shares, names) {
  const most = largest(shares);
  return `${quoted(names[state.token])} looks most at ${most === state.token ? "itself" : quoted(names[most])}`;
}

function sentence(shares, names) {
  const order = shares.map((_, i) => i).sort((a, b) => shares[b] - shares[a]).slice(0, 3), rest = S - order.length;
  const given = order.map((i) => `${format(shares[i])} to ${i === state.token ? "itself" : quoted(names[i])}`);
  const others = rest > 0 ? ` and ${format(1 - sum(order.map((i) => shares[i])))} to ${rest === 1 ? "the other token" : `the ${rest} others`}` : "";
  const now = `In layer ${layers[state.layer]}, head ${state.head}, ${quoted(names[state.token])} gives ${given.join(", ")}${others}.`;
  if (!state.before) return now;
  const was = texts[state.before.text], then = row(state.before)[state.target];
  return `With ${quoted(nameOf(names))} instead of ${quoted(nameOf(was))}, ${quoted(names[state.target])} gets ${format(shares[state.target])}, not ${format(then)}. ${now}`;
}

const clamp = (number, most) => Math.max(0, Math.min(most, number));
drawing.addEventListener("keydown", (event) => {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key], down = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (!by && !down) return;
  event.preventDefault();
  const at = clamp(state.layer * heads + state.head + (down ?? 0), L * heads - 1);
  change(by ? { token: clamp(state.token + by, S - 1) } : { layer: Math.floor(at / heads), head: at % heads });
  words[state.token].all.focus();
});
grid.addEventListener("keydown", (event) => {
  const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? [];
  if (down === undefined) return;
  event.preventDefault();
  change({ layer: clamp(state.layer + down, L - 1), head: clamp(state.head + right, heads - 1) });
  cells[state.layer][state.head].focus();
});

state.target = best(row());
draw();
new ResizeObserver(() => {
  if (figure.isConnected && figure.clientWidth && drawing.viewBox.baseVal.width !== widthNow()) draw();
}).observe(figure);
