// A search in an HNSW graph as a walk towards a target (Malkov and Yashunin 2018, algorithms 2 and 5, as faiss runs
// them).

explain("Guess, then play the search or press “next”; point at a text, or tap it, to read its name.");

const { names, scores, angles, links, entry, query, k } = data,
  N = names.length; // links[layer][node]: its neighbours
const nearest = names
  .map((_, node) => node)
  .sort((a, b) => scores[b] - scores[a])
  .slice(0, k);

// What is known after so many steps of a search: how many texts were compared, how many of the nearest were met, the
// best cosine.
function compute({ ef, at }) {
  const steps = search(ef),
    { sofar, best } = steps[(at ?? steps.length) - 1] ?? { sofar: new Set([entry]), best: entry };
  return {
    comparisons: sum(steps.map(({ met }) => met.length)),
    met: sofar.size,
    found: nearest.filter((node) => sofar.has(node)).length,
    best: scores[best],
    scores,
  };
}

// Every step of a search that keeps `ef` candidates in view: the node whose neighbours are met, and those met for the
// first time. The search finds the k best of all that it meets.
function search(ef) {
  const walked = [];
  let best = entry;
  const near = (a, b) => scores[b] - scores[a];
  for (let layer = links.length - 1; layer > 0; layer--) {
    for (let from = null; from !== best; ) {
      from = best;
      const met = links[layer][from];
      walked.push({ layer, node: from, met });
      for (const node of met) if (scores[node] > scores[best]) best = node;
    }
  }
  const seen = new Set([best]);
  let kept = [best],
    waiting = [best]; // the ef best met so far, and those of them whose neighbours are not met yet
  while (waiting.length) {
    const node = waiting.sort(near).shift();
    if (kept.filter((other) => scores[other] > scores[node]).length >= ef) break; // ef better ones are in view
    const met = links[0][node].filter((other) => !seen.has(other));
    walked.push({ layer: 0, node, met });
    for (const other of met) {
      seen.add(other);
      kept.push(other);
      waiting.push(other);
    }
    kept = kept.sort(near).slice(0, ef);
    waiting = waiting.filter((other) => kept.includes(other));
  }
  return walked.map(({ layer, node, met }, at) => {
    const sofar = new Set([entry, ...walked.slice(0, at + 1).flatMap((step) => [step.node, ...step.met])]);
    const from = walked.slice(0, at).find((step) => step.met.includes(node))?.node ?? node; // where it was first met
    return { layer, node, met, from, sofar, best: [...sofar].sort(near)[0] };
  });
}

// The query is the middle, and the distance from it is 1 − cosine, exactly.
const EDGE = 100,
  least = Math.min(...scores),
  most = Math.max(...scores),
  far = (cosine) => (EDGE * (1 - cosine)) / (1 - least || 1);
const points = names.map((_, node) => [
  far(scores[node]) * Math.cos(angles[node]),
  far(scores[node]) * Math.sin(angles[node]),
]);
const gap = [0.2, 0.1, 0.05, 0.02, 0.01].find((step) => (most - least) / step >= 3) ?? 0.2; // between two rings
const marked = Array.from({ length: 1 + Math.ceil(2 / gap) }, (_, i) => 1 - i * gap).filter(
  (cosine) => least <= cosine && cosine < most,
);

root.classList.add("high");
const row = add(figure, "div", { class: "row" }),
  left = add(row, "div", { class: "left" });
const svg = add(left, "svg", {
  viewBox: "-106 -106 212 212",
  role: "img",
  class: "target",
  style: "width: 100%",
  "aria-label": `${N} texts around the query, the nearer the larger their cosine, and the way of the search among them`,
});
const ring = (radius, more) => add(svg, "circle", { r: radius, fill: "none", ...more });
for (const cosine of marked) ring(far(cosine), { stroke: "var(--line)", "stroke-width": 0.4 });
const ahead = ring(0, {
  class: "reached",
  fill: "var(--query)",
  "fill-opacity": 0.09,
  stroke: "var(--query)",
  "stroke-width": 0.5,
  "stroke-dasharray": "2 1.4",
});
const compared = add(svg, "path", { stroke: "var(--grey)", "stroke-width": 0.35, fill: "none" });
const way = add(svg, "path", { stroke: "var(--query)", "stroke-width": 1.3, fill: "none", "stroke-linecap": "round" });
const at = ([x, y]) => `${x} ${-y}`,
  put = (element, [x, y]) => set(element, { cx: x, cy: -y });
const dots = names.map((_, node) => {
  const dot = add(svg, "circle", { class: "text", "data-value": scores[node] });
  put(dot, points[node]);
  return dot;
});
const circle = (stroke, more) => ring(3.4, { stroke, "stroke-width": 1, ...more });
const rings = nearest.map((node) => {
  const one = circle("var(--average)");
  put(one, points[node]);
  return one;
});
const here = circle("var(--query)"),
  star = Array.from({ length: 10 }, (_, i) => [i % 2 ? 1.9 : 4.6, (i * Math.PI) / 5]);
add(svg, "path", {
  d: `M${star.map(([long, by]) => `${long * Math.sin(by)} ${-long * Math.cos(by)}`).join("L")}Z`,
  fill: "var(--query)",
});
add(svg, "rect", {
  x: points[entry][0] - 2.4,
  y: -points[entry][1] - 2.4,
  width: 4.8,
  height: 4.8,
  fill: "none",
  stroke: "currentColor",
  "stroke-width": 0.8,
});
const write = (text, colour = "currentColor") =>
  add(svg, "text", { "text-anchor": "middle", style: `fill: ${colour}; pointer-events: none` }, text);
const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
const ringNames = marked.map((cosine) => write("", "var(--soft)")),
  limit = Math.min(N, 64);
const numbers = Array.from({ length: limit + 60 }, () => write("", "var(--query)"));
const labels = [...nearest.map(() => write("", "var(--average)")), write("start"), write("query", "var(--query)")];
const pointedAt = write("");
const key = add(left, "p", {
  style: "display: flex; flex-wrap: wrap; gap: 0 14px; margin: 4px 0 0; font-size: var(--small)",
});
for (const [text, fill, stroke] of [
  ["compared in this step", "var(--query)"],
  ["compared before", "currentColor"],
  ["not compared", "var(--grey)"],
  [`one of the ${k} nearest`, "none", "var(--average)"],
  ["goes on from here", "none", "var(--query)"],
]) {
  const item = add(key, "span"),
    mark = add(item, "svg", { viewBox: "-5 -5 10 10", width: 12, style: "display: inline", "aria-hidden": true });
  add(mark, "circle", { r: stroke ? 3.6 : 3, fill, stroke: stroke ?? "none", "stroke-width": 1.4 });
  item.append(` ${text}`);
}
add(key, "span", {}, "numbers: its order");
const note = add(
  left,
  "p",
  { style: "margin: 4px 0 0; font-size: var(--small); color: var(--soft)" },
  "Each point is a text. Its distance from the query is exact: 1 − cosine. " +
    "The order around it is that in a plane (PCA).",
);

const side = add(row, "div", { class: "side" });
add(side, "p", { class: "asked" }, `Search for: ${query}`);
const guesses = [`yes, all ${k} nearest`, "no, it gets stuck"];
const radios = choice(side, "Will it reach the middle?", guesses, null, (name) => {
  guessed = name;
  draw(step.at());
});
const cells = table(
  side,
  [`the ${k} nearest`, "cosine", "met?"],
  nearest.map((node) => names[node]),
);
nearest.forEach((node, i) => show(cells[i][0], scores[node]));
const counts = add(side, "p"),
  met = add(counts, "span", { class: "met" });
counts.append(` of ${N} compared with the query, `);
const found = add(counts, "span", { class: "found" });
counts.append(` of the ${k} nearest found`);
side.append(document.getElementById("say"));

const controls = add(left, "div", { class: "controls" });
left.append(controls, key, note);
const state = { ef: data.ef, at: 0 };
let walk = search(state.ef),
  free = freest(),
  guessed = null,
  progress = {}; // the owner of a walk's move
slider(controls, "candidates in view (efSearch)", { min: k, max: limit, value: data.ef }, (ef) => {
  const over = step.at() === walk.length;
  state.ef = ef;
  [walk, guessed, progress] = [search(ef), null, {}];
  free = freest();
  picture([0]);
  step.last(walk.length, over ? walk.length : 0); // at the end, readers compare it with the other walk's
});
const step = steps(controls, "step", walk.length, draw, true);

function draw(number) {
  state.at = number;
  const {
    node,
    layer,
    met: fresh,
    sofar,
    best,
  } = walk[number - 1] ?? { met: [], sofar: new Set([entry]), best: entry };
  const arrived = number === walk.length,
    hits = nearest.filter((one) => sofar.has(one));
  const known = nearest.map((one) => arrived || (number > 0 && sofar.has(one)));
  radios.forEach((radio, i) => Object.assign(radio, { checked: guesses[i] === guessed, disabled: number > 0 }));
  rings.forEach((one, i) =>
    set(one, {
      visibility: known[i] ? "visible" : "hidden",
      "stroke-dasharray": sofar.has(nearest[i]) ? "none" : "1.6 1.3",
    }),
  );
  nearest.forEach((one, i) => {
    cells[i][1].textContent = sofar.has(one) ? "yes" : "no";
    const shown = [names[one], format(scores[one])],
      row = cells[i][0].parentNode; // a question mark keeps their room
    [row.firstChild, cells[i][0]].forEach((cell, at) => {
      cell.textContent = known[i] ? shown[at] : "?";
    });
  });
  show(met, sofar.size, 0);
  show(found, hits.length, 0);
  glide(progress, [number], picture, shownBy.get(progress) ?? [0]);
  glide(ahead, [far(scores[best])], ([r]) => set(ahead, { r }));
  name(walk.slice(0, number), known);
  const where = layer ? `in layer ${layer}, where few texts have links` : "in the bottom layer, where all texts are";
  const nearer = `The nearest so far is “${names[best]}”, ${format(scores[best])}.`;
  if (!number) {
    const asked = guessed === null ? "Will it reach the middle, or get stuck on the way? Guess." : "Now press “next”.";
    say(
      `The search starts at “${names[entry]}”, wherever the query is, and sees only the links of the texts it goes ` +
        `on from. ${asked}`,
    );
  } else if (!arrived) {
    say(`From “${names[node]}”, ${where}, it compares ${fresh.length} more texts with the query. ${nearer}`);
  } else if (hits.length === k) {
    say(`It has found all ${k} after comparing ${sofar.size} of the ${N} texts with the query.${verdict(true)}`);
  } else {
    say(
      `It stops after comparing ${sofar.size} of the ${N} texts: no candidate leads further in. It missed ` +
        `${k - hits.length} of the ${k} nearest (dashed). Keep more candidates in view.${verdict(false)}`,
    );
  }
}

const verdict = (reached) =>
  guessed === null ? "" : (guessed === guesses[0]) === reached ? " You guessed it." : " You guessed otherwise.";

// The walk after so many steps, the last of which may be on its way.
function picture([number]) {
  const done = Math.ceil(number),
    share = number - Math.floor(number) || 1,
    past = walk.slice(0, done);
  const along = (from, to, by) => points[from].map((start, i) => start + by * (points[to][i] - start));
  const lineTo = (from, to, i) => `M${at(points[from])}L${at(along(from, to, i === done - 1 ? share : 1))}`;
  const first = done ? [] : walk.filter(({ node }) => node === entry).flatMap(({ met }) => met); // where it can go
  const links = first.map((other) => `M${at(points[entry])}L${at(points[other])}`).join("");
  compared.setAttribute(
    "d",
    links || past.flatMap(({ node, met }, i) => met.map((other) => lineTo(node, other, i))).join(""),
  );
  way.setAttribute("d", past.map(({ node, from }, i) => (from === node ? "" : lineTo(from, node, i))).join(""));
  const last = past.at(-1),
    fresh = last?.met ?? [],
    sofar = last?.sofar ?? new Set([entry]);
  put(here, last ? along(past.at(-2)?.node ?? entry, last.node, share) : points[entry]);
  dots.forEach((dot, node) =>
    set(dot, {
      fill: fresh.includes(node) ? "var(--query)" : sofar.has(node) ? "currentColor" : "var(--grey)",
      r: fresh.includes(node) ? 1.9 : 1.4,
    }),
  );
}

// The direction in which the rings are named: that with the most room between the points and all lines of a walk.
function freest() {
  const lines = walk.flatMap(({ node, met, from }) => [...met, from].map((other) => [points[node], points[other]]));
  const beside = ([x, y], [[a, b], [c, d]]) => {
    const long = (c - a) ** 2 + (d - b) ** 2 || 1,
      share = Math.max(0, Math.min(1, ((x - a) * (c - a) + (y - b) * (d - b)) / long));
    return Math.hypot(0.5 * (x - a - share * (c - a)), y - b - share * (d - b)); // a name is wider than high
  };
  const room = (way) =>
    Math.min(
      ...marked
        .filter((cosine) => far(cosine) > 12)
        .map((cosine) => {
          const at = way.map((part) => part * far(cosine));
          return Math.min(
            ...lines.map((line) => beside(at, line)),
            ...points.map((point) => 1.5 * beside(at, [point, point])),
          );
        }),
      8,
    );
  const ways = Array.from({ length: 72 }, (_, i) => [Math.sin((i * Math.PI) / 36), -Math.cos((i * Math.PI) / 36)]),
    rooms = ways.map(room);
  return ways[largest(rooms)];
}

// Names where they are known, and numbers at the nodes from which the search went on, the first time.
function name(past, known) {
  const high = letterSize(svg),
    few = Math.round(120 / high),
    visited = [...new Set(past.map(({ node }) => node))];
  const place = (element, text, [x, y], { out = 0, up = 0, beside = 0 }) => {
    element.textContent = text;
    set(element, { "font-size": high });
    const long = Math.hypot(x, y) || 1,
      across = beside && (x < 0 ? -1 : 1) * (beside + 0.2 * high + element.getComputedTextLength() / 2);
    return { element, x: x + (out * x) / long + across, y: y + (out * y) / long + up };
  };
  const begins = !past.length; // when all is new, the two ends of the walk are named in full
  const fixed = [[0, 0, 4], ...[...nearest, entry].map((node) => [...points[node], 3.4])];
  makeRoom(
    [
      ...nearest.map((node, i) =>
        place(labels[i], known[i] ? short(names[node], few) : "", points[node], { beside: 3.6 }),
      ),
      place(labels[k], begins ? `start: ${short(names[entry], few)}` : "start", points[entry], { up: 1.2 * high }),
      place(labels[k + 1], begins ? `query: ${short(query, 2 * few)}` : "query", [0, 0], { up: -1.3 * high }),
    ],
    fixed,
    high,
    106,
  );
  // Numbers and the names of rings take the room that is left, and those without room go; the end of the walk stays
  // longest
  const taken = [...labels.filter(({ textContent }) => textContent), ...rings].map((one) => one.getBBox());
  const named = taken.map(({ x, y, width, height }) => [x + width / 2, -y - height / 2, width / 2, height / 3]);
  makeRoom(
    [
      ...numbers.map((element, i) =>
        place(element, visited[i] === undefined ? "" : i + 1, points[visited[i] ?? 0], { out: 1.1 * high }),
      ),
      ...marked.map((cosine, i) =>
        place(
          ringNames[i],
          `${i ? "" : "cosine "}${format(cosine, gap < 0.1 ? 2 : 1)}`,
          free.map((part) => part * far(cosine)),
          {},
        ),
      ),
    ],
    [...fixed, ...named, ...visited.map((node) => points[node])],
    high,
    106,
  );
  const used = numbers.slice(0, visited.length);
  for (const element of [...used.slice(-1), ...ringNames, ...used.slice(0, -1)]) {
    const box = element.getBBox(),
      inner = box.height / 6; // letters do not fill their line
    const free = taken.every(
      (one) =>
        box.x >= one.x + one.width ||
        one.x >= box.x + box.width ||
        box.y + inner >= one.y + one.height - inner ||
        one.y + inner >= box.y + box.height - inner,
    );
    if (free) taken.push(box);
    else element.textContent = "";
  }
}

// The name of the text under the pointer or the finger.
function pointAt(event) {
  const { x, y } = pointIn(svg, event),
    high = letterSize(svg);
  const away = points.map(([a, b]) => -Math.hypot(a - x, b + y)),
    node = largest(away);
  pointedAt.textContent = away[node] > -high ? `${short(names[node], 30)} ${format(scores[node])}` : "";
  set(pointedAt, { "font-size": high });
  makeRoom([{ element: pointedAt, x: points[node][0], y: points[node][1] + 1.2 * high }], [], high, 106);
}
svg.addEventListener("pointermove", pointAt);
svg.addEventListener("click", pointAt);
svg.addEventListener("pointerleave", ({ pointerType }) => {
  if (pointerType === "mouse") pointedAt.textContent = "";
});

step.go(0);
redraw(svg, () => draw(step.at()));
