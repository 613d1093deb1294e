// A decoder's shares for the next token: temperature, then top-k, then top-p, in transformers' order, and draws.

explain(
  "Move the temperature, top-k or top-p. The outline is the share that the model gives, and the bar " +
  "the share that is left. The end of the scale is above the bars. Then draw tokens and compare.",
);

const { logits, names } = data, count = logits.length;
const order = logits.map((_, i) => i).sort((a, b) => logits[b] - logits[a] || a - b);
const shown = order.slice(0, count > 13 ? 12 : 13), others = order.slice(shown.length);
const before = softmax(logits);
const state = { temperature: 1, k: count, p: 1 };
let shares = before, drawn, random, draws = 100; // the figure begins with a hundred

const controls = add(figure, "div", { class: "controls" });
const choose = (name, value) => { state[name] = value; draw(); };
// A log scale, from 0.1 to 3
const temperature = (at) => Math.min(3, 10 ** at);
slider(controls, "temperature ", { min: -1, max: 0.48, step: 0.02, value: 0, shown: (at) => format(temperature(at)) },
  (at) => choose("temperature", temperature(at)));
slider(controls, "top-k ", { min: 1, max: count, value: count, shown: (k) => (k < count ? k : "off") },
  (k) => choose("k", k));
slider(controls, "top-p ", { min: 0.05, max: 1, step: 0.05, value: 1, shown: (p) => (p < 1 ? format(p) : "off") },
  (p) => choose("p", p));

const labels = [...shown.map((i) => `“${names[i]}”`), ...(others.length ? [`all others (${others.length})`] : [])];
const groups = [...shown.map((i) => [i]), ...(others.length ? [others] : [])];
const cells = table(figure, ["token", "logit", "the model's share", "share now", "0 … 1", "drawn"], labels);
const all = figure.querySelector("table"), [limit, tallied] = [...all.querySelectorAll("thead > tr > *")].slice(4);
limit.style.textAlign = "right";
add(document.head, "style", {}, `
  @media (max-width: 500px) { tr > :nth-child(2) { display: none; } th, td { font-size: var(--small); }
    tbody th:first-child { white-space: nowrap; } }
`);
all.style.width = "100%";
all.querySelectorAll("thead th").forEach((head) => { head.style.whiteSpace = "normal"; });
// What the outline and the bar stand for, at the head of their numbers
const key = "display: inline-block; width: 16px; height: 10px; margin-right: 4px; box-sizing: border-box; vertical-align: -1px; ";
[[2, "border: 1px solid currentColor"], [3, "background: var(--key)"]].forEach(([at, look]) => (
  all.querySelectorAll("thead > tr > *")[at].prepend(Object.assign(document.createElement("span"), { style: key + look }))
));

// The share that is left is a filled bar, the model's own share an outline around it.
const rows = cells.map(([logit, share, now, track, tally], at) => {
  if (groups[at].length === 1) show(logit, logits[groups[at][0]]);
  show(share, sum(groups[at].map((i) => before[i])), 3);
  track.style = "width: 45%; padding: 0 8px";
  const box = add(track, "div", { style: "position: relative; height: 14px; background: var(--faint)" });
  const fill = "position: absolute; top: 0; left: 0; height: 14px; box-sizing: border-box; min-width: 0; ";
  const bar = add(box, "span", { class: "bar", style: fill });
  const outline = { class: "bar", style: `${fill}background: none; border: 1px solid currentColor` };
  return { name: share.parentNode.firstChild, now, bar, tally, share, own: add(box, "span", outline) };
});

const buttons = add(figure, "div", { class: "controls" });
const acts = { "draw a token": () => take(1), "draw 100 tokens": () => take(100), "clear the draws": () => { draws = 0; draw(); } };
for (const [name, act] of Object.entries(acts)) {
  add(buttons, "button", { type: "button" }, name).addEventListener("click", act);
}

function filtered() {
  const scaled = logits.map((logit) => logit / state.temperature);
  const least = scaled[order[state.k - 1]]; // ties with the k-th stay, as in transformers
  const kept = scaled.map((score) => (score < least ? -Infinity : score));
  if (state.p === 1) return softmax(kept);
  // From the least likely up, tokens go as long as all that have gone make up 1 − p at most. One always stays.
  const parts = softmax(kept), upwards = kept.map((_, i) => i).sort((a, b) => kept[a] - kept[b] || b - a);
  let total = 0;
  upwards.slice(0, -1).forEach((i) => {
    total += parts[i];
    if (total <= 1 - state.p) kept[i] = -Infinity;
  });
  return softmax(kept);
}

// After each change as many tokens are drawn again, with the same seed: a tally belongs to one set of shares.
function draw() {
  shares = filtered();
  drawn = shares.map(() => 0);
  random = generator(0);
  const now = groups.map((group) => sum(group.map((i) => shares[i])));
  const most = Math.max(...now, ...rows.map(({ share }) => +share.dataset.value));
  const full = [0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1].find((end) => end >= most - 1e-9) ?? 1; // where a track ends
  limit.textContent = `0 … ${format(full)}`;
  rows.forEach(({ name, now: shown, bar, own, share: model }, at) => {
    const share = now[at], cut = groups[at].every((i) => shares[i] === 0);
    show(shown, share, 3);
    stretch(bar, share / full);
    stretch(own, +model.dataset.value / full);
    name.style = cut ? "color: var(--soft); text-decoration: line-through" : "";
    shown.style.color = cut ? "var(--soft)" : "";
  });
  for (let i = 0; i < draws; i++) drawn[pick()]++;
  tell();
}

function take(times) {
  let last;
  draws += times;
  for (let i = 0; i < times; i++) {
    last = pick();
    drawn[last]++;
  }
  tell(`${times > 1 ? `${times} more draws, the last` : "Drawn"}: “${names[last]}”. ` +
    `${sum(drawn)} so far; the more draws, the closer the tally comes to the shares. `);
}

// The token in whose part of the line from 0 to 1 a random number falls.
function pick() {
  let rest = random();
  for (const i of order) {
    rest -= shares[i];
    if (rest < 0) return i;
  }
  return order[0]; // rounding
}

function tell(news = "") {
  tallied.textContent = draws ? `drawn, of ${draws}` : "drawn";
  rows.forEach(({ tally }, at) => show(tally, sum(groups[at].map((i) => drawn[i])), 0));
  if (news) return say(news);
  const stay = shares.filter((share) => share > 0).length, best = largest(shares), share = percent(shares[best]);
  const sizes = { "-1": "Below 1, the temperature sharpens: likely tokens gain. ",
    1: "Above 1, the temperature flattens: unlikely tokens gain. ", 0: "" }[Math.sign(state.temperature - 1)];
  const times = draws ? ` Of ${draws} draws, ${drawn[best]} gave “${names[best]}”.` : "";
  if (stay === 1) say(`Only “${names[best]}” is left: this is greedy search, the same token each time.`);
  else if (stay < count) say(`${sizes}${stay} of ${count} tokens are left${nucleus()}; “${names[best]}” has ${share}.${times}`);
  else say(`${sizes}All ${count} tokens can be drawn; “${names[best]}” has ${share}.${times}`);
}

// What top-p keeps, in words.
const nucleus = () => (state.p < 1 ? `, the likeliest until their shares reach ${format(state.p)}` : "");

// Mulberry32 (Tommy Ettinger 2017, public domain), as bryc wrote it in JavaScript: random numbers from 0 to 1, the same for the
// same seed.
function generator(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

draw();
