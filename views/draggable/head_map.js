// A map of all heads: a button for each and, with `means`, one for the mean of each layer, and one for the mean of all. `heads`, the number of heads, is the place of a layer's mean, and that of layers the place of all.

import { clamp, format } from "../numbers.js";
import { add, onArrows, ramp, set } from "../elements.js";

// `choose(layer, head, event)` is called with what was pressed. Returns `show`, which names a number in each cell,
// `numbers[layer][head]`, and those of both ends of the colours, and marks those that are chosen; and `paint`.
export function headMap(parent, layers, heads, role, choose, means = true) {
  const across = means ? heads + 1 : heads;
  const grid = add(add(parent, "div", { class: "scroll" }), "div", {
    class: "heads",
    role: role === "radio" ? "radiogroup" : "group",
    "aria-label": "the head",
  });
  grid.style.setProperty("--columns", across);
  const label = (text, kind = "") => add(grid, "span", { class: kind, "aria-hidden": true }, text);
  add(label("", "side"), "span", {}, "head");
  for (let head = 0; head < heads; head++) label(head);
  if (means) label("mean", "mean");
  const rows = [...layers.map((number, at) => `${number}`), ...(means && layers.length > 1 ? ["all"] : [])];
  const cells = rows.map((text, layer) => {
    const name = label("", "side");
    if (!layer) add(name, "span", {}, "layer ");
    name.append(text);
    const isAll = layer === layers.length;
    return Array.from({ length: across }, (_, head) => {
      if (isAll && head < heads) return label("");
      const cell = add(grid, "button", { type: "button", class: head < heads ? "cell" : "cell last", role });
      cell.addEventListener("click", (event) => choose(layer, head, event));
      return cell;
    });
  });
  const isCell = (cell) => cell?.matches("button");
  const nameOfCell = (layer, head) => {
    if (layer === layers.length) return "mean of all heads";
    return `layer ${layers[layer]}, ${head === heads ? "mean of its heads" : `head ${head}`}`;
  };
  let now = [0, 0]; // to which the keyboard comes
  onArrows(grid, (right, down) => {
    const head = clamp(now[1] + right, 0, across - 1),
      layer = clamp(now[0] + down, 0, cells.length - 1);
    const to = isCell(cells[layer][head]) ? [layer, head] : down ? [layer, heads] : now;
    if (role === "radio") choose(...to, {});
    else go(to);
    cells[to[0]][to[1]].focus();
  });
  grid.addEventListener("focusin", ({ target }) => {
    cells.forEach((row, layer) => {
      if (row.includes(target)) go([layer, row.indexOf(target)]);
    });
  });
  function go(to) {
    cells[now[0]][now[1]].tabIndex = -1;
    now = to;
    cells[now[0]][now[1]].tabIndex = 0;
  }
  const each = (act) =>
    cells.forEach((row, layer) => row.forEach((cell, head) => isCell(cell) && act(cell, layer, head)));
  const scale = add(parent, "p", { class: "ends" });
  const colour = (share) => `color-mix(in srgb, var(--key) ${100 * share}%, var(--ground, var(--paper)))`;
  function show(numbers, isChosen, meaning = "", ends = [0, 1]) {
    if (numbers) ramp(scale, ends, colour);
    each((cell, layer, head) => {
      const share = numbers?.[layer][head],
        number = numbers ? `: ${format(share)}${meaning}` : "",
        name = nameOfCell(layer, head) + number,
        checked = isChosen(layer, head);
      set(cell, { "aria-checked": checked, tabindex: -1, "aria-label": name, title: name });
      if (numbers) cell.dataset.value = share;
      if (checked && (role === "radio" || !grid.contains(document.activeElement))) now = [layer, head];
    });
    go(now);
  }
  const paint = (shares) =>
    each((cell, layer, head) => cell.style.setProperty("--share", `${100 * shares[layer][head]}%`));
  return { cells, show, paint };
}
