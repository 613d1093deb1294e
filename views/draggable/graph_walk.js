// A search in an HNSW graph, node by node (Malkov and Yashunin 2018, algorithms 2 and 5, as faiss runs them).

explain(
  "Each point is a text, each line a link that the search has followed. Purple points are compared in " +
  "this step, rings mark the texts that are truly nearest. Move the number of candidates, and step " +
  "through the walk. The plane flattens many dimensions into two, so near in the picture is not always " +
  "near.",
);

const { names, places, scores, links, entry, query, k } = data, N = names.length; // links[layer][node]: its neighbours
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
  viewBox: "-110 -72 220 144", role: "img", style: "max-width: 640px; flex-basis: 420px",
  "aria-label": `${N} texts as points, and the links that a search for ${query} has followed`,
});
const at = (node) => `${places[node][0]} ${places[node][1]}`;
const lines = (from, to) => to.map((node) => `M${at(from)}L${at(node)}`).join("");
const way = add(svg, "path", { stroke: "var(--query)", "stroke-width": 0.5, fill: "none" });
const dots = names.map((name, node) => {
  const dot = add(svg, "circle", { cx: places[node][0], cy: places[node][1], r: 1.3 });
  add(dot, "title", {}, name);
  return dot;
});
const rings = nearest.map((node) => add(svg, "circle", {
  cx: places[node][0], cy: places[node][1], r: 3, fill: "none", stroke: "var(--average)", "stroke-width": 0.9,
}));
add(svg, "rect", {
  x: places[entry][0] - 2.4, y: places[entry][1] - 2.4, width: 4.8, height: 4.8, fill: "none", stroke: "currentColor",
  "stroke-width": 0.8,
});
for (const [node, text] of [[entry, "start"], ...nearest.map((one) => [one, names[one]])]) {
  const [x, y] = places[node], right = x > 40;
  const place = { x: x + (right ? -4 : 4), y: y + 1.5, "text-anchor": right ? "end" : "start", "font-size": 4.6 };
  add(svg, "text", place, text.length > 24 ? `${text.slice(0, 23)}…` : text);
}
const here = add(svg, "circle", { r: 2.4, fill: "none", stroke: "var(--mark)", "stroke-width": 1.2 });

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
let walk = search(data.ef);
const most = Math.min(N, 64);
slider(controls, "candidates in view (efSearch)", { min: k, max: most, value: data.ef }, (ef) => {
  walk = search(ef);
  step.last(walk.length, walk.length);
});
const step = steps(controls, "step", walk.length, draw);

function draw(number) {
  const beginning = { node: entry, layer: links.length - 1, met: [], sofar: new Set([entry]) };
  const { node, layer, met: fresh, sofar } = number ? walk[number - 1] : beginning;
  dots.forEach((dot, other) => set(dot, {
    fill: fresh.includes(other) ? "var(--query)" : sofar.has(other) ? "currentColor" : "var(--line)",
    r: fresh.includes(other) ? 1.8 : 1.3,
  }));
  way.setAttribute("d", walk.slice(0, number).map((past) => lines(past.node, past.met)).join(""));
  set(here, { cx: places[node][0], cy: places[node][1] });
  const hits = nearest.filter((one) => sofar.has(one));
  rings.forEach((ring, i) => ring.setAttribute("stroke-dasharray", sofar.has(nearest[i]) ? "none" : "1.2 1"));
  nearest.forEach((one, i) => { cells[i][1].textContent = sofar.has(one) ? "yes" : "no"; });
  show(met, sofar.size, 0);
  show(found, hits.length, 0);
  const arrived = number === walk.length;
  const where = layer ? `in layer ${layer}, where few texts have links` : "in the bottom layer, where all texts are";
  if (!number) say(`The search begins at “${names[entry]}”, wherever the query is.`);
  else if (!arrived) {
    say(`It stands at “${names[node]}”, ${where}, and compares ${fresh.length} more of its neighbours with the query.`);
  } else if (hits.length === k) {
    say(`It has found all ${k} after comparing ${sofar.size} of the ${N} texts with the query.`);
  } else {
    say(`It stops after comparing ${sofar.size} of the ${N} texts: no candidate leads nearer. It missed ` +
      `${k - hits.length} of the ${k} nearest. Keep more candidates in view.`);
  }
}

step.go(walk.length);
