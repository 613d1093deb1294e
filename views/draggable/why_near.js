// Why two texts are near: the cosine of their mean vectors, divided among all pairs of tokens.

explain(
  "Point at a word or a line, tap it, or go through the words with the arrow keys, to see its share of the cosine. " +
    "Blue lines add to it, dashed orange ones take away.",
);

const ROW = 26,
  HEAD = 24; // pixels of a word, and of what is above and below all words

const controls = add(figure, "div", { class: "controls" });
const state = { at: 0, whole: true, chosen: null };
if (data.comparisons.length > 1) {
  const names = data.names;
  choice(controls, "On the left", names, names[0], (name) => {
    state.at = names.indexOf(name);
    draw();
  });
}
tick(controls, "pieces of words", false, (on) => {
  state.whole = !on;
  readAll();
});
const drawing = add(figure, "svg", {
  class: "near",
  role: "group",
  "aria-label": "the tokens of two texts, and the shares of their pairs",
});
let all = [],
  now = null,
  strongest = null,
  longest = 1; // of all texts on the left, so that they share a scale
const owners = {},
  owner = (key) => (owners[key] ??= {}); // of what moves: words and lines are drawn again each time
const isAside = (name) => /^\[.*\]$|^[^\p{L}\p{N}]*$/u.test(name); // special tokens and punctuation

// The shares of the tokens, or of the words: rows and columns of one word are added up.
function compute({ at, whole }) {
  const { sides, shares, cosine } = data.comparisons[at];
  const parts = sides.map(({ tokens, words }) => {
    if (!whole) return tokens.map((token, i) => ({ name: token, members: [i] }));
    const found = new Map();
    tokens.forEach((token, i) => {
      const word = found.get(words[i]) ?? found.set(words[i], { name: "", members: [] }).get(words[i]);
      word.name += word.members.length ? token.replace(/^##/, "") : token;
      word.members.push(i);
    });
    return [...found.values()];
  });
  const added = parts[0].map((a) =>
    parts[1].map((b) => sum(a.members.flatMap((i) => b.members.map((j) => shares[i][j])))),
  );
  const totals = [added.map(sum), parts[1].map((_, j) => sum(added.map((row) => row[j])))];
  return { parts, added, totals, cosine };
}

// As wide as the page, up to 640 pixels, so that letters keep their size on a phone.
const widthNow = () => Math.max(300, Math.min(640, figure.clientWidth));

function readAll() {
  const sizes = (rows) => rows.flat().map(Math.abs);
  all = data.comparisons.map((_, at) => compute({ at, whole: state.whole }));
  strongest = { share: Math.max(...all.flatMap(({ added }) => sizes(added))) };
  longest = Math.max(...all.flatMap(({ totals }) => sizes(totals)));
  draw();
}

function draw() {
  now = all[state.at];
  document.getElementById("details").textContent = `“${data.names[state.at]}” and “${data.other}”`;
  state.chosen = null;
  const { parts, added, totals, cosine } = now,
    most = Math.max(parts[0].length, parts[1].length),
    height = ROW * most + 2 * HEAD;
  const WIDTH = widthNow(),
    LEFT = Math.round(0.31 * WIDTH),
    RIGHT = WIDTH - LEFT,
    letters = Math.floor((LEFT - 40) / 7.5);
  drawing.replaceChildren();
  set(drawing, { viewBox: `0 0 ${WIDTH} ${height}` });
  const offset = parts.map((words) => HEAD + (ROW * (most - words.length)) / 2);
  const middle = (side, i) => offset[side] + ROW * (i + 0.5);
  const pairs = ranked(added).slice(0, MOST_LINES);
  now.drawn = pairs;
  // What the numbers are, above each text's, and what they add up to, below
  offset.forEach((top, side) => {
    const place = { x: side ? WIDTH : 0, "text-anchor": side ? "end" : "start" };
    add(drawing, "text", { ...place, y: top - 8, class: "total" }, "sum of its lines");
    add(
      drawing,
      "text",
      { ...place, y: top + ROW * parts[side].length + 17, class: "total whole" },
      `${format(cosine)} = cosine`,
    );
  });
  now.lines = pairs.map((pair) => {
    const { i, j, share } = pair;
    const aside = isAside(parts[0][i].name) || isAside(parts[1][j].name) ? "aside" : "";
    const line = add(drawing, "line", {
      x1: LEFT + 6,
      x2: RIGHT - 6,
      "data-value": share,
      class: `${share < 0 ? "minus" : "plus"} ${aside}`,
    });
    glide(owner(`${i} to ${j}`), [middle(0, i), middle(1, j), thickness(pair, strongest)], ([y1, y2, width]) => {
      set(line, { y1, y2, "stroke-width": width });
    });
    line.addEventListener("pointerenter", () => tell({ i, j }));
    line.addEventListener("click", () => tell({ i, j })); // a tap also takes the focus from a word, which then lets go
    leave(line);
    return line;
  });
  now.labels = labels(pairs.slice(0, STRONG), (pair, along) => [
    LEFT + 6 + along * (RIGHT - LEFT - 12),
    middle(0, pair.i) + along * (middle(1, pair.j) - middle(0, pair.i)) + 4,
  ]);
  now.words = parts.map((words, side) =>
    words.map(({ name }, i) => {
      const total = totals[side][i],
        cut = name.length > letters ? `${name.slice(0, letters - 1)}\u2026` : name;
      const word = add(drawing, "g", {
        class: isAside(name) ? "word aside" : "word",
        role: "button",
        tabindex: side + i ? -1 : 0,
        "data-value": total,
        "data-at": `${side} ${i}`,
      });
      nameShown(word, `${cut} ${format(total)}`, `of the cosine${cut === name ? "" : `: ${name}`}`);
      const length = (LEFT - 40) * Math.min(1, Math.abs(total) / longest);
      const bar = add(word, "rect", { y: middle(side, i) - 12, height: 24, rx: 3, class: total < 0 ? "minus" : "" });
      add(word, "rect", {
        x: side ? RIGHT : 0,
        y: middle(side, i) - 12,
        width: LEFT,
        height: 24,
        style: "fill: transparent; stroke: none",
      });
      add(
        word,
        "text",
        { x: side ? RIGHT + 4 : LEFT - 4, y: middle(side, i) + 5, "text-anchor": side ? "start" : "end" },
        cut,
      );
      word.append(" "); // between the two texts, for programs that read what is shown
      const number = add(word, "text", {
        x: side ? WIDTH : 0,
        y: middle(side, i) + 5,
        "text-anchor": side ? "end" : "start",
        class: "total",
      });
      glide(owner(`${side} ${i}`), [length, total], ([length, total]) => {
        set(bar, { x: side ? RIGHT : LEFT - length, width: Math.max(length, 1) });
        number.textContent = format(total);
      });
      const chosen = side ? { j: i } : { i };
      word.addEventListener("pointerenter", () => tell(chosen));
      leave(word);
      word.addEventListener("focus", () => tell(chosen));
      word.addEventListener("blur", () => tell(null));
      onArrows(word, (right, down) => move(right, down, side, i));
      return word;
    }),
  );
  // The first sentence is the longest: keep its height, so that nothing moves under the pointer
  const said = document.getElementById("say");
  said.style.minHeight = "";
  tell(null);
  said.style.minHeight = `${said.offsetHeight}px`;
}

// A finger leaves when it is lifted: what it tapped stays chosen until the next tap.
function leave(element) {
  element.addEventListener("pointerleave", ({ pointerType }) => {
    if (pointerType !== "touch") tell(null);
  });
}

// The numbers of the strongest lines, each where there is no other.
function labels(pairs, at) {
  const taken = [];
  return pairs.map((pair) => {
    const free = ([x, y]) => taken.every(([left, top]) => Math.abs(x - left) > 40 || Math.abs(y - top) > 15);
    const places = [0.5, 0.3, 0.7, 0.15, 0.85].map((along) => at(pair, along)),
      [x, y] = places.find(free) ?? places[0];
    taken.push([x, y]);
    return add(drawing, "text", { class: "share", x, y, fill: "currentColor" }, format(pair.share, 3));
  });
}

function move(right, down, side, i) {
  const words = now.words[clamp(side + right, 0, 1)],
    next = words[clamp(i + down, 0, words.length - 1)];
  now.words.flat().forEach((word) => set(word, { tabindex: word === next ? 0 : -1 }));
  next.focus();
}

const share = (number) => `${format(number, 3)} of the cosine ${format(now.cosine, 3)}`;

// Show the lines of a word, one line, or all of them, and say what they add up to.
function tell(chosen) {
  const { parts, added, totals, drawn, lines, labels, words, cosine } = now;
  lines.forEach((line, number) =>
    line.classList.toggle("dim", chosen ? !isMeant(drawn[number], chosen) : number >= STRONG),
  );
  labels.forEach((label) => set(label, { visibility: chosen ? "hidden" : "visible" }));
  words.forEach((side, k) =>
    side.forEach((word, at) => word.classList.toggle("chosen", Boolean(chosen) && chosen[k ? "j" : "i"] === at)),
  );
  if (!chosen) {
    const all = added.length * added[0].length,
      rest = cosine - sum(drawn.map((pair) => pair.share));
    const left =
      all > drawn.length
        ? ` The ${all - drawn.length} smallest have no line; together they are ${format(rest, 3)}.`
        : "";
    const most = drawn
      .slice(0, STRONG)
      .map((pair) => `“${parts[0][pair.i].name}” with “${parts[1][pair.j].name}” ${format(pair.share, 3)}`);
    say(
      `All ${all} shares add up to ${format(sum(totals[0]), 3)}. The cosine of the two vectors is ` +
        `${format(cosine, 3)}. The largest shares: ${most.join(", ")}.${left}`,
    );
  } else if (chosen.i !== undefined && chosen.j !== undefined) {
    say(`“${parts[0][chosen.i].name}” with “${parts[1][chosen.j].name}”: ${share(added[chosen.i][chosen.j])}`);
  } else {
    const side = chosen.i === undefined ? 1 : 0,
      at = chosen.i ?? chosen.j;
    const row = side ? added.map((each) => each[at]) : added[at],
      best = largest(row);
    say(
      `“${parts[side][at].name}” with all tokens of the other text: ${share(totals[side][at])}. Its largest share is ` +
        `${format(row[best], 3)}, with “${parts[1 - side][best].name}”.`,
    );
  }
}

readAll();
redraw(figure, draw, drawing);
