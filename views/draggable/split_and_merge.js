// How (S, H) is split into heads and merged again: every number is followed through view, transpose and reshape.

import { clamp } from "../numbers.js";
import { add, onArrows } from "../elements.js";
import { choice, data, explain, figure, keepChoices, rearrange, say, show, steps } from "./figure.js";
import { compute, numbersOf, PATHS, placeOf, range } from "./compute/split_and_merge.js";

explain("Play the steps and follow one number (click or tap it, or press the arrow keys); then choose a wrong order.");

const sizes = { S: data.names.length, A: data.heads, D: data.size, H: data.heads * data.size };
const nameOf = (token) => data.names[token] ?? `token ${token}`,
  headOf = (head) => `head ${head}`;

// A number's three digits are its token, its head and its coordinate in the head, each from 0.
const digitsOf = (number) => placeOf(number, numbersOf("SAD", sizes));

const state = { path: Object.keys(PATHS)[0], at: 0, sizes },
  followed = { number: sizes.A * sizes.D + sizes.D }; // token 1, head 1

choice(add(figure, "div", { class: "controls" }), "Order", Object.keys(PATHS), state.path, (name) => {
  state.path = name;
  walk.last(PATHS[name].length - 1, Math.min(walk.at(), PATHS[name].length - 1));
});
const row = add(figure, "div", { class: "row" }),
  blocks = add(row, "div", { class: "blocks scroll", tabindex: 0, role: "group", "aria-label": "the numbers of q" });
blocks.style.flexBasis = `${Math.max(372, 34 * sizes.H + 80)}px`; // one table fits at each step
const side = add(row, "div", { class: "side" }),
  path = add(side, "ol", { class: "path" });
const walk = steps(add(side, "div", { class: "controls walk" }), "step", 4, (at) => {
  state.at = at;
  rearrange(blocks, draw);
});
blocks.addEventListener("click", ({ target }) => target.dataset.value && follow(+target.dataset.value));
onArrows(blocks, (right, down) => {
  follow(followed.number + right + down * sizes.H);
  blocks.querySelector(".followed").scrollIntoView({ block: "nearest", inline: "nearest" });
});
function follow(number) {
  followed.number = clamp(number, 0, sizes.S * sizes.H - 1);
  draw();
}

function draw() {
  const all = PATHS[state.path],
    { tell } = all[state.at],
    { numbers, wanted, shape } = compute(state);
  path.replaceChildren();
  all.forEach((step, at) => {
    const item = add(path, "li", at === state.at ? { "aria-current": "step" } : {});
    add(item, "span", {}, step.name);
    add(item, "span", {}, `(${[...step.shape].join(", ")}) = (${numbersOf(step.shape, sizes).join(", ")})`);
  });
  const wrong = drawBlocks(shape, numbers, wanted),
    [token, head, coordinate] = digitsOf(followed.number);
  const place = placeOf(numbers.indexOf(followed.number), numbersOf(shape, sizes)).join(", ");
  const misplaced = `${wrong} of ${numbers.length} numbers are in the wrong place (dashed).`;
  say(
    `${wrong ? `${tellWrong(shape)} ${misplaced}` : tell(sizes)} The framed number, ${[token, head, coordinate].join("")}, ` +
      `belongs to token ${token}, head ${head}, coordinate ${coordinate}; here it is q[${place}].`,
  );
}

function tellWrong(shape) {
  return {
    ASD:
      "The shape is right, the content is not: view cuts the numbers in reading order, so head 0 gets parts " +
      "of other heads, too, and nothing of the last token.",
    SAD: "Swapping does not repair it: the blocks of the tokens are mixed, too.",
    SH: "The shape is right again, so torch raises no error, but a row no longer holds the numbers of one token.",
  }[shape];
}

// One table for each index of the first dimension; returns how many numbers are not where they should be.
function drawBlocks(shape, numbers, wanted) {
  const [count, rows, columns] = shape === "SH" ? [1, sizes.S, sizes.H] : numbersOf(shape, sizes);
  const titles = { S: nameOf, A: headOf },
    named = titles[shape.at(-2)];
  blocks.replaceChildren();
  let wrong = 0;
  for (const block of range(count)) {
    const all = add(blocks, "table");
    if (shape === "SH") nameHeads(all);
    else add(all, "caption", {}, titles[shape[0]](block));
    const body = add(all, "tbody");
    for (const i of range(rows)) {
      const line = add(body, "tr");
      add(line, "th", { scope: "row" }, named(i));
      for (const j of range(columns)) {
        const at = (block * rows + i) * columns + j,
          number = numbers[at],
          cell = add(line, "td", { "data-key": number });
        show(cell, number);
        cell.textContent = digitsOf(number).join("");
        const strength = 100 - (80 * Math.floor((number % sizes.H) / sizes.D)) / sizes.A;
        cell.style.setProperty("--head", `color-mix(in srgb, var(--key) ${strength}%, var(--ground, var(--paper)))`);
        cell.classList.toggle("followed", number === followed.number);
        cell.classList.toggle("wrong", number !== wanted[at]);
        wrong += +(number !== wanted[at]);
      }
    }
  }
  return wrong;
}

function nameHeads(all) {
  const line = add(add(all, "thead"), "tr");
  add(line, "td", { style: "visibility: hidden" });
  range(sizes.A).forEach((head) => add(line, "th", { scope: "colgroup", colspan: sizes.D }, headOf(head)));
}

walk.last(PATHS[state.path].length - 1);
keepChoices(followed, draw);
