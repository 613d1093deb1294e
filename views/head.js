// Runs in the page of a head view after reader.js: a tile for each head, a colour for a few of them, a pinned word.

const FEW = 6; // heads with a hue of their own, in the order in which they were chosen
const MANY = 20; // heads whose stripes are numbered
const FAINT = 0.12; // the share of their opacity that weak lines keep while no word is chosen
const tiles = add(document.getElementById("tools"), "div", { id: "heads", role: "group", "aria-label": "heads" });
const first = data.attention[data.default_filter].right_text[0]; // [CLS], or whatever begins the text
const withoutFirst = tick(document.getElementById("tools"), `without ${first}`, false, () => {
  lightLines();
  report();
});
const TOKEN = "#left > g:last-child > g, #right > g:last-child > g";
let order = []; // of the heads that are shown, as they were chosen
let pinned = null,
  followed = null; // the token whose lines are shown alone: { index, from }
let before = []; // the opacities of the lines, for the next layer's to begin at

const view = {
  selector: "#attention line",
  row: 22.5, // from one token to the next, as bertviz draws it
  get top() {
    return view.heads().length > FEW ? 0 : 26; // bertviz's tiles are hidden; the numbers of many heads are there
  },
  zoom: 1.16,
  width: 340,
  smallest: () => 1.07, // so that a row has 24 pixels
  groups: [
    { selector: "#left > g:last-child > g", from: true, role: "button" },
    { selector: "#right > g:last-child > g", from: false, role: "button" },
    { selector: "#heads > button", across: () => Infinity, role: "checkbox" },
  ],
  drawn: () => panel().attn[config.layer_seq],
  heads: () =>
    panel()
      .attn[config.layer_seq].map((weights, head) => ({ head, weights }))
      .filter(({ head }) => config.headVis[head]),
  named: (heads) =>
    `layer ${config.layer}, head${heads.length > 1 ? "s" : ""} ${heads.map(({ head }) => head).join(", ")}`,
  ends(line) {
    const head = +line.parentNode.parentNode.getAttribute("head-index");
    return {
      head: { head, weights: panel().attn[config.layer_seq][head] },
      row: +line.getAttribute("left-token-index"),
    };
  },
  describe: (element) => (element.matches("#heads > button") ? `head ${placeOf(element)}` : null),
  shows(row, column) {
    const focus = pinned ?? followed;
    return !leftOut(row, column) && (!focus || focus.index === (focus.from ? row : column));
  },
  hides: (line) => isFaint(line) || leftOut(view.ends(line).row, line.__index__),
  state() {
    const heads = view.heads(),
      said = [heads.length < config.nHeads ? view.named(heads) : `layer ${config.layer}, all heads`];
    return [...said, pinned && describeToken(pinned), withoutFirst.checked && `without ${first}`];
  },
  keeps: () => ({
    layer: config.layer,
    heads: order.length < config.nHeads ? order : undefined,
    pinned: pinned ?? undefined,
    without: withoutFirst.checked || undefined,
  }),
  prepare({ layer, heads, without }) {
    if (heads) Object.assign(data, { layer, heads });
    order = data.heads ? [...data.heads] : [];
    withoutFirst.checked = Boolean(without);
    data.attention[data.default_filter].attn[0].forEach((_, head) => {
      const tile = add(tiles, "button", { type: "button", class: "tile" }, head);
      tile.addEventListener("click", () => fire(vis.querySelectorAll("#tiles > rect")[head], "click"));
      tile.addEventListener("dblclick", () => fire(vis.querySelectorAll("#tiles > rect")[head], "dblclick"));
      tile.addEventListener("mouseover", () => showHead(head));
      tile.addEventListener("mouseout", () => showHead(null));
    });
  },
  equip() {
    const svg = vis.querySelector("svg"),
      { headVis } = config,
      isNew = svg.lastChild.id !== "tiles";
    svg.lastChild.id = "tiles";
    const now = [...headVis.keys()].filter((head) => headVis[head]);
    order = [...order.filter((head) => headVis[head]), ...now.filter((head) => !order.includes(head))];
    [...tiles.children].forEach((tile, head) => {
      set(tile, { "aria-checked": headVis[head] });
      tile.style.setProperty("--hue", hueOf(head));
    });
    for (const group of vis.querySelectorAll("[head-index]")) {
      const hue = hueOf(+group.getAttribute("head-index"));
      group.style.setProperty("--hue", group.closest(".attentionBoxes") ? behindText(hue) : hue);
    }
    if (isNew && before.length) glideLines();
    if (isNew && pinned) follow(pinned);
    report();
  },
  light() {
    const focus = pinned ?? followed,
      lines = vis.querySelectorAll(view.selector);
    for (const line of lines) {
      const weight = line.__data__,
        seen = root.classList.contains("dark") ? Math.sqrt(weight) : weight, // a faint line is lost on a dark ground
        isShown = config.headVis[view.ends(line).head.head];
      line.style.strokeOpacity = isShown ? seen * (focus || weight >= STRONG ? 1 : FAINT) : 0;
    }
    for (const token of all(TOKEN)) {
      const { index, from } = tokenOf(token);
      token.classList.toggle("pinned", pinned?.index === index && pinned.from === from);
    }
    before = lines.length <= 5000 ? Array.from(lines, (line) => line.style.strokeOpacity) : [];
    numberHeads(focus);
  },
  begin({ pinned: token }) {
    const index = data.token;
    if (token && fits(token)) pin(token);
    else if (Number.isInteger(index)) follow({ index, from: true });
    begins = !token && Number.isInteger(index);
    const end = () => {
      if (begins) leave();
    };
    for (const type of ["pointerenter", "focusin"]) vis.addEventListener(type, end, { once: true });
    document.addEventListener("change", end, { once: true, capture: true });
  },
  forget: () => pin(null),
};

let ours = false; // whether bertviz is being told of the pinned token
let begins = false; // whether the token that was passed is still shown: until the reader's pointer or keyboard comes
const fits = ({ index, from }) => index < panel()[from ? "left_text" : "right_text"].length;
const leftOut = (row, column) =>
  withoutFirst.checked &&
  [
    [row, "left_text"],
    [column, "right_text"],
  ].some(([at, side]) => at === 0 && panel()[side][0] === first);
const tokenAt = ({ index, from }) =>
  document.querySelectorAll(`${from ? "#left" : "#right"} > g:last-child > g`)[index];

// The lines of the layer that was shown turn into those of the next.
function glideLines() {
  const lines = vis.querySelectorAll(view.selector);
  if (lines.length !== before.length || !animated()) return;
  lines.forEach((line, at) => {
    line.style.strokeOpacity = before[at];
  });
  getComputedStyle(lines[0]).strokeOpacity; // from here
}

// All heads share one blue. A few that are chosen have a hue each; on a dark ground, lines are lighter.
function hueOf(head) {
  if (!config.headVis[head]) return "var(--faint)";
  const hue = order.length > 1 && order.length <= FEW ? colour("heads").split(" ")[order.indexOf(head)] : colour("key");
  return root.classList.contains("dark") ? `color-mix(in srgb, ${hue} 85%, white)` : hue;
}

// In a box text must stay legible on a weight of 1.
function behindText(hue) {
  return order.length > 1 && order.length <= FEW
    ? `color-mix(in srgb, ${hue} 55%, var(--ground, var(--paper)))`
    : "var(--weight)";
}

// A word is pinned by a click or tap, and freed by the second. Until then bertviz does not hear of other words.
function follow(token) {
  followed = token;
  const element = tokenAt(token);
  ours = true;
  if (element) fire(element, "mouseover");
  ours = false;
}

function leave() {
  begins = false;
  followed = null;
  for (const side of all("#left, #right")) fire(side, "mouseleave");
}

function pin(token) {
  pinned = null; // so that bertviz hears of it
  leave();
  if (token) follow(token);
  pinned = token;
  lightLines();
  report();
}

const tokenOf = (element) => {
  const token = element.closest?.(TOKEN);
  return token && { index: placeOf(token), from: Boolean(token.closest("#left")) };
};
document.addEventListener(
  "mouseover",
  (event) => {
    const token = tokenOf(event.target);
    if (!token) return;
    if (pinned && !ours) return event.stopImmediatePropagation();
    followed = token;
    requestAnimationFrame(() => {
      if (followed) lightLines();
      report();
    });
  },
  true,
);
document.addEventListener(
  "mouseleave",
  (event) => {
    if (!event.target.matches?.("#left, #right")) return;
    if (pinned) return event.stopImmediatePropagation();
    followed = null;
    requestAnimationFrame(() => {
      lightLines();
      report();
    });
  },
  true,
);
vis.addEventListener("click", ({ target }) => {
  const token = tokenOf(target);
  if (token) pin(pinned?.index === token.index && pinned.from === token.from ? null : token);
});

function showHead(head) {
  for (const group of vis.querySelectorAll(".headAttention")) {
    group.style.opacity = head === null || head === +group.getAttribute("head-index") ? "" : 0.05;
  }
}

// The largest weights of a token, per head if there are at most three.
function describeToken({ index, from }) {
  const sides = [panel().left_text, panel().right_text],
    [own, others] = from ? sides : sides.reverse();
  const heads = view.heads(),
    weights = heads
      .flatMap(({ head, weights }) =>
        others.map((_, at) => ({
          head,
          at,
          weight: from ? weights[index][at] : weights[at][index],
          shown: !leftOut(...(from ? [index, at] : [at, index])),
        })),
      )
      .filter(({ weight, shown: isShown }) => isShown && weight >= MIN_WEIGHT)
      .sort((one, other) => other.weight - one.weight);
  const name = nameOf(own, index),
    arrow = from ? "→" : "←";
  const list = (some, numbered) =>
    some
      .slice(0, 3)
      .map(({ head, at, weight }) => `${nameOf(others, at)} ${format(weight)}${numbered ? ` (head ${head})` : ""}`)
      .join(", ") || "no line";
  if (heads.length > 3) return `layer ${config.layer}: ${name} ${arrow} ${list(weights, true)}`;
  return heads
    .map((head) => `${view.named([head])}: ${name} ${arrow} ${list(weights.filter((one) => one.head === head.head))}`)
    .join("\n");
}

// Below the drawing: the numbers of the chosen word.
function report() {
  const focus = pinned ?? followed;
  if (!focus) return say(window.still ? "" : "Point at or tap a word to read its weights.");
  say(describeToken(focus) + (pinned ? "\nPinned: click or tap the word again to free it." : ""));
}

// A head's number at its strongest line, if a few are shown, and at each strongly coloured box of the chosen word.
function numberHeads(focus) {
  const svg = vis.querySelector("svg"),
    heads = view.heads();
  svg.querySelector("#numbers")?.remove();
  const numbers = add(svg, "g", { id: "numbers" });
  svg.insertBefore(numbers, svg.lastChild.previousSibling);
  if (heads.length < 2) return;
  const visible = (weights) =>
    weights
      .flatMap((values, row) => values.map((weight, column) => ({ weight, row, column })))
      .filter(({ weight, row, column }) => weight >= Math.max(threshold(), MIN_WEIGHT) && view.shows(row, column));
  if (heads.length <= FEW) {
    heads.forEach(({ head, weights }, at) => {
      const [most] = visible(weights).sort((one, other) => other.weight - one.weight);
      if (!most) return;
      const along = 0.3 + (0.4 * at) / (heads.length - 1),
        y = (index) => 30 + (index + 0.5) * view.row;
      const point = { x: 110 + 115 * along, y: y(most.row) + along * (y(most.column) - y(most.row)) + 4 };
      add(numbers, "text", { ...point, class: "number", "text-anchor": "middle" }, head).style.setProperty(
        "--hue",
        hueOf(head),
      );
    });
  }
  if (!focus) return;
  if (heads.length > FEW && heads.length <= MANY) {
    heads.forEach(({ head }, at) => {
      const x = (focus.from ? 225 : 0) + (110 * (at + 0.5)) / heads.length; // where bertviz draws its stripe
      add(numbers, "text", { x, y: at % 2 ? 26 : 14, class: "number stripe", "text-anchor": "middle" }, head);
    });
  }
  const texts = svg.querySelectorAll(`${focus.from ? "#right" : "#left"} text`);
  texts.forEach((text, at) => {
    const strong = heads
      .map(({ head, weights }) => ({ head, weight: focus.from ? weights[focus.index][at] : weights[at][focus.index] }))
      .filter(({ weight }) => weight >= Math.max(STRONG, threshold()))
      .sort((one, other) => other.weight - one.weight);
    if (!strong.length || leftOut(...(focus.from ? [focus.index, at] : [at, focus.index]))) return;
    const box = text.getBBox(),
      x = focus.from ? box.x + box.width + 8 : box.x - 8;
    const label = add(numbers, "text", {
      x,
      y: box.y + 15,
      class: "number",
      "text-anchor": focus.from ? "start" : "end",
    });
    strong.slice(0, 3).forEach(({ head }, place) => {
      add(label, "tspan", {}, `${place ? " " : ""}${head}`).style.setProperty("--hue", hueOf(head));
    });
    if (strong.length > 3) add(label, "tspan", {}, " …");
  });
}
