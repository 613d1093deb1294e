// A search in an HNSW graph, node by node (Malkov and Yashunin 2018, algorithms 2 and 5, as faiss runs them).

explain(
  "Each point is a text, and the star is the query. Guess which text is nearest: click a point. Then step through the " +
  "walk: thin lines lead to the texts that are compared; numbers, where they have room, count those from which the search " +
  "went on. The plane flattens many dimensions into two, so near in the picture is not always near.",
);

const { names, places, star, scores, links, entry, query, k } = data, N = names.length; // links[layer][node]: its neighbours
const nearest = names.map((_, node) => node).sort((a, b) => scores[b] - scores[a]).slice(0, k);

// Every step of a search that keeps `ef` candidates in view: the node whose neighbours are met, and those met for the
// first time. What is found are the k best of all met.
function search(ef) {
  const walked = [];
  let best = entry;
  const near = (a, b) => scores[b] - scores[a];
  for (let layer = links.length - 1; layer > 0; layer--) {
    for (let from = null; from !== best;) {
      from = best;
      const met = links[layer][from];
      walked.push({ layer, node: from, met });
      for (const node of met) if (scores[node] > scores[best]) best = node;
    }
  }
  const seen = new Set([best]);
  let kept = [best], waiting = [best]; // the ef best met so far, and those of them whose neighbours are not met yet
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
    return { layer, node, met, sofar };
  });
}

const svg = add(add(figure, "div", { class: "row" }), "svg", {
  viewBox: "-110 -72 220 144", role: "img", style: "max-width: 640px; flex-basis: 420px; cursor: pointer",
  "aria-label": `${N} texts as points, and the links that a search for ${query} has followed`,
});
const at = (node) => `${places[node][0]} ${places[node][1]}`, most = Math.min(N, 64);
const compared = add(svg, "path", { stroke: "var(--line)", "stroke-width": 0.5, fill: "none" });
const way = add(svg, "path", { stroke: "var(--query)", "stroke-width": 1.1, fill: "none" });
const dots = names.map((name, node) => {
  const dot = add(svg, "circle", { cx: places[node][0], cy: places[node][1], r: 1.3 });
  add(dot, "title", {}, name);
  return dot;
});
const ringAt = (node, stroke) => add(svg, "circle", {
  cx: places[node][0], cy: places[node][1], r: 3, fill: "none", stroke, "stroke-width": 0.9,
});
const rings = nearest.map((node) => ringAt(node, "var(--average)"));
const guess = ringAt(entry, "var(--mark)"), here = ringAt(entry, "var(--query)");
set(guess, { r: 4.4, "stroke-dasharray": "2 1.4" });
const points = Array.from({ length: 10 }, (_, i) => [i % 2 ? 1.9 : 4.6, (i * Math.PI) / 5]);
add(svg, "path", { // the star
  d: `M${points.map(([far, by]) => `${star[0] + far * Math.sin(by)} ${star[1] - far * Math.cos(by)}`).join("L")}Z`,
  fill: "var(--query)", stroke: "var(--ground, var(--paper))", "stroke-width": 0.6,
});
add(svg, "rect", {
  x: places[entry][0] - 2.4, y: places[entry][1] - 2.4, width: 4.8, height: 4.8, fill: "none", stroke: "currentColor",
  "stroke-width": 0.8,
});
const write = (text, colour = "currentColor") => add(svg, "text", { "text-anchor": "middle", style: `fill: ${colour}` }, text);
const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
const numbers = Array.from({ length: most + 60 }, () => write("", "var(--query)"));
const labels = [...nearest.map(() => write("", "var(--average)")), write("start"), write("query", "var(--query)")];

const side = add(svg.parentNode, "div", { style: "flex-basis: 220px" });
add(side, "p", { style: "margin: 0 0 4px" }, `Search for: ${query}`);
const cells = table(side, [`the ${k} nearest`, "cosine", "met?"], nearest.map((node) => names[node]));
nearest.forEach((node, i) => show(cells[i][0], scores[node]));
const counts = add(side, "p"), met = add(counts, "span", { class: "met" });
counts.append(` of ${N} compared with the query, `);
const found = add(counts, "span", { class: "found" });
counts.append(` of the ${k} nearest found`);
side.append(document.getElementById("say"));

const controls = add(figure, "div", { class: "controls" });
let walk = search(data.ef), guessed = null;
slider(controls, "candidates in view (efSearch)", { min: k, max: most, value: data.ef }, (ef) => {
  const over = step.at() === walk.length;
  walk = search(ef);
  step.last(walk.length, over ? walk.length : 0); // who looked at the end compares it with the other's
});
const step = steps(controls, "step", walk.length, draw);
const select = add(add(controls, "label", {}, "my guess"), "select", { style: "max-width: 170px" });
add(select, "option", { value: "" }, "none yet");
names.forEach((name, node) => add(select, "option", { value: node }, name));
select.addEventListener("change", () => {
  guessed = select.value === "" ? null : +select.value;
  draw(step.at());
});
svg.addEventListener("click", ({ clientX, clientY }) => {
  if (step.at()) return;
  const { x, y } = new DOMPoint(clientX, clientY).matrixTransform(svg.getScreenCTM().inverse());
  const far = places.map(([a, b]) => -Math.hypot(a - x, b - y));
  guessed = largest(far);
  select.value = guessed;
  draw(0);
});

// For each step but the first the link by which the search came to its node: from the one that first met it.
function cameBy(steps) {
  return steps.map(({ node }, i) => {
    const from = steps.slice(0, i).find(({ met }) => met.includes(node));
    return from && from.node !== node ? `M${at(from.node)}L${at(node)}` : "";
  }).join("");
}

function draw(number) {
  const beginning = { node: entry, layer: links.length - 1, met: [], sofar: new Set([entry]) };
  const { node, layer, met: fresh, sofar } = number ? walk[number - 1] : beginning;
  const arrived = number === walk.length, past = walk.slice(0, number);
  dots.forEach((dot, other) => set(dot, {
    fill: fresh.includes(other) ? "var(--query)" : sofar.has(other) ? "currentColor" : "var(--grey)",
    r: fresh.includes(other) ? 1.8 : 1.3,
  }));
  compared.setAttribute("d", past.map(({ node, met }) => met.map((other) => `M${at(node)}L${at(other)}`).join("")).join(""));
  way.setAttribute("d", cameBy(past));
  set(here, { cx: places[node][0], cy: places[node][1] });
  set(guess, guessed === null ? { visibility: "hidden" } : { visibility: "visible", cx: places[guessed][0], cy: places[guessed][1] });
  const known = nearest.map((one) => arrived || (number > 0 && sofar.has(one)));
  rings.forEach((ring, i) => set(ring, {
    visibility: known[i] ? "visible" : "hidden", "stroke-dasharray": sofar.has(nearest[i]) ? "none" : "1.2 1",
  }));
  nearest.forEach((one, i) => {
    cells[i][1].textContent = sofar.has(one) ? "yes" : "no";
    cells[i][0].parentNode.style.visibility = known[i] ? "" : "hidden"; // its room is kept
  });
  show(met, sofar.size, 0);
  const hits = nearest.filter((one) => sofar.has(one));
  show(found, hits.length, 0);
  name(past, known);
  const where = layer ? `in layer ${layer}, where few texts have links` : "in the bottom layer, where all texts are";
  if (!number) {
    const asked = guessed === null ? "Which text is nearest to it? Click a point." : `You guess “${names[guessed]}”. Now press “next”.`;
    say(`The search begins at “${names[entry]}”, wherever the query is. ${asked}`);
  } else if (!arrived) {
    say(`It stands at “${names[node]}”, ${where}, and compares ${fresh.length} more of its neighbours with the query.`);
  } else if (hits.length === k) {
    say(`It has found all ${k} after comparing ${sofar.size} of the ${N} texts with the query.${verdict()}`);
  } else {
    say(`It stops after comparing ${sofar.size} of the ${N} texts: no candidate leads nearer. It missed ` +
      `${k - hits.length} of the ${k} nearest (dashed). Keep more candidates in view.${verdict()}`);
  }
}

function verdict() {
  if (guessed === null) return "";
  const better = scores.filter((score) => score > scores[guessed]).length;
  return better ? ` Your guess, “${names[guessed]}”, is number ${better + 1} of all ${N}.` : " Your guess is the nearest of all.";
}

// Numbers at the nodes from which the search went on, the first time, and names where they are known.
function name(past, known) {
  const high = letterSize(svg), few = Math.round(150 / high), seen = new Map();
  past.forEach(({ node }) => seen.set(node, seen.get(node) ?? seen.size + 1));
  const placed = [];
  const put = (element, text, [x, y], up) => {
    element.textContent = text;
    set(element, { "font-size": high });
    placed.push({ element, x, y: -y + up });
  };
  nearest.forEach((node, i) => put(labels[i], known[i] ? short(names[node], few) : "", places[node], -1.2 * high));
  put(labels[k], "start", places[entry], -1.2 * high);
  put(labels[k + 1], "query", star, 1.3 * high);
  const visited = [...seen];
  numbers.forEach((element, i) => put(element, visited[i] ? visited[i][1] : "", visited[i] ? places[visited[i][0]] : [0, 0], 0.9 * high));
  makeRoom(placed, [star, ...visited.map(([node]) => places[node])].map(([x, y]) => [x, -y]), high, [110, 72]);
  // Where there is no room for all, names, the start and the end stay, and a number that would lie on another goes
  const used = numbers.slice(0, visited.length), kept = [];
  for (const element of [...labels, ...used.slice(-1), ...used.slice(0, -1)].filter((one) => one.textContent)) {
    const box = element.getBBox(), inner = box.height / 6; // letters do not fill their line
    const free = labels.includes(element) || kept.every((one) => box.x >= one.x + one.width || one.x >= box.x + box.width ||
      box.y + inner >= one.y + one.height - inner || one.y + inner >= box.y + box.height - inner);
    if (free) kept.push(box);
    else element.textContent = "";
  }
}

step.go(0);
redraw(svg, () => draw(step.at()));
