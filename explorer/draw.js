// Numbers as colours: tables for tokens × tokens, canvases for rows of vectors. Both show a number on hover and focus.
// The page's colour scales, light or dark

import { blend, clamp, format } from "../views/numbers.js";
import { add, ARROWS, by, stopsOf } from "../views/elements.js";

export const colours = () => ({ above: stopsOf("above"), below: stopsOf("below") });

// The colour of a number on a scale from -limit to limit, as [red, green, blue]
const colour = (value, limit, palette) =>
  blend(value < 0 ? palette.below : palette.above, Math.min(Math.abs(value) / limit, 1) || 0);

const light = ([r, g, b]) =>
  [r, g, b].map((v) => (v / 255) ** 2.2).reduce((sum, v, i) => sum + v * [0.21, 0.72, 0.07][i], 0);
const rgb = (channels) => `rgb(${channels.join(" ")})`;

function showTip(text, { left, top, width }) {
  const tip = by("tip");
  tip.textContent = text;
  tip.hidden = false;
  const x = left + width / 2 - tip.offsetWidth / 2;
  tip.style.left = `${Math.max(4, Math.min(x, document.documentElement.clientWidth - tip.offsetWidth - 4))}px`;
  tip.style.top = `${top > tip.offsetHeight + 12 ? top - tip.offsetHeight - 8 : top + 28}px`;
}

function hideTip() {
  by("tip").hidden = true;
}

// The cell that an arrow key leads to in a grid of rows × columns; undefined for other keys
export function step(key, row, column, rows, columns) {
  const inside = (index, count) => clamp(index, 0, count - 1);
  if (key === "Home") return [row, 0];
  if (key === "End") return [row, columns - 1];
  const [right, down] = ARROWS[key] ?? [];
  return ARROWS[key] && [inside(row + down, rows), inside(column + right, columns)];
}

// Draw the colour scale below a drawing
function drawScale(parent, limit, signed, palette) {
  const stops = Array.from({ length: 11 }, (_, i) =>
    rgb(colour(((signed ? i - 5 : i / 2) / 5) * limit, limit, palette)),
  );
  parent.replaceChildren(format(signed ? -limit : 0, 1));
  add(parent, "span", { class: "ramp" }).style.background = `linear-gradient(to right, ${stops.join(", ")})`;
  parent.append(format(limit, 1));
}

// A table of tokens × tokens. `say(row, column, value)` returns the text for a cell.
export class Matrix {
  constructor(host, caption, say, onRow) {
    this.caption = caption;
    this.say = say;
    this.onRow = onRow;
    add(host, "h3", {}, caption);
    this.table = add(add(host, "div", { class: "scroll" }), "table", { class: "matrix" });
    this.scale = add(host, "p", { class: "scale" });
    this.table.addEventListener("pointerover", (event) => this.tell(event.target));
    this.table.addEventListener("pointerleave", hideTip);
    this.table.addEventListener("focusin", (event) => this.tell(event.target));
    this.table.addEventListener("focusout", hideTip);
    this.table.addEventListener("click", (event) => this.choose(event.target));
    this.table.addEventListener("keydown", (event) => this.move(event));
  }

  tell(cell) {
    if (cell.dataset.row === undefined) return hideTip();
    const [row, column] = [+cell.dataset.row, +cell.dataset.column];
    return showTip(this.say(row, column, this.values[row * this.cells.length + column]), cell.getBoundingClientRect());
  }

  choose(cell) {
    if (cell.dataset.row !== undefined) this.onRow(+cell.dataset.row);
  }

  move(event) {
    if (event.key === "Enter" || event.key === " ") this.choose(event.target);
    const { row, column } = event.target.dataset,
      count = this.cells.length;
    const next = row !== undefined && step(event.key, +row, +column, count, count);
    if (!next && event.key !== " ") return;
    event.preventDefault();
    if (!next) return;
    event.target.tabIndex = -1;
    const cell = this.cells[next[0]][next[1]];
    cell.tabIndex = 0;
    cell.focus();
  }

  rebuild(tokens) {
    this.tokens = tokens;
    this.table.replaceChildren();
    add(this.table, "caption", { class: "unseen" }, this.caption);
    const top = add(add(this.table, "thead"), "tr"),
      body = add(this.table, "tbody");
    const heading = (row, token, scope) => add(add(row, "th", { scope, title: token }), "span", {}, token);
    add(top, "td");
    for (const token of tokens) heading(top, token, "col");
    this.cells = tokens.map((name, row) => {
      const line = add(body, "tr");
      heading(line, name, "row");
      return tokens.map((_, column) =>
        add(line, "td", { tabindex: row || column ? -1 : 0, "data-row": row, "data-column": column }),
      );
    });
    this.table.classList.toggle("dense", tokens.length > 18);
  }

  draw(tokens, values, { limit, signed, chosen }) {
    if (this.tokens !== tokens) this.rebuild(tokens);
    const palette = colours();
    this.values = values;
    this.cells.forEach((cells, row) =>
      cells.forEach((cell, column) => {
        const value = values[row * tokens.length + column],
          ground = colour(value, limit, palette);
        cell.textContent = format(value);
        cell.style.background = rgb(ground);
        cell.style.color = light(ground) > 0.18 ? "black" : "white";
        cell.parentElement.classList.toggle("chosen", row === chosen);
      }),
    );
    drawScale(this.scale, limit, signed, palette);
  }
}

// Rows of vectors, one token a row, one number a column
export class Rows {
  constructor(host, caption, say, onRow) {
    this.say = say;
    this.onRow = onRow;
    this.tokens = [];
    this.values = null;
    this.row = this.column = this.columns = 0;
    add(host, "h3", {}, caption);
    const all = add(host, "div", { class: "rows" });
    this.labels = add(all, "div", { class: "labels" });
    const field = add(all, "div", { class: "field" }),
      label = `${caption}. Use the arrow keys to read its numbers.`;
    this.canvas = add(field, "canvas", { tabindex: 0, role: "application", "aria-label": label });
    this.mark = add(field, "div", { class: "mark" });
    this.cursor = add(field, "div", { class: "cursor", hidden: "" });
    this.scale = add(host, "p", { class: "scale" });
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => this.leave());
    this.canvas.addEventListener("focus", () => this.tell());
    this.canvas.addEventListener("blur", () => this.leave());
    this.canvas.addEventListener("click", (event) => {
      this.point(event);
      this.onRow?.(this.row);
    });
    this.canvas.addEventListener("keydown", (event) => this.move(event));
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect(),
      inside = (share, count) => clamp(Math.floor(share * count), 0, count - 1);
    this.row = inside((event.clientY - box.top) / box.height, this.tokens.length);
    this.column = inside((event.clientX - box.left) / box.width, this.columns);
    this.tell();
  }

  move(event) {
    if (event.key === "Enter" || event.key === " ") this.onRow?.(this.row);
    const next = step(event.key, this.row, this.column, this.tokens.length, this.columns);
    if (next || event.key === " ") event.preventDefault();
    if (!next) return;
    [this.row, this.column] = next;
    this.tell();
    by("spoken").textContent = by("tip").textContent;
  }

  tell() {
    const box = this.canvas.getBoundingClientRect(),
      width = box.width / this.columns,
      height = box.height / this.tokens.length;
    const place = { left: this.column * width, top: this.row * height, width, height };
    for (const [side, length] of Object.entries(place)) this.cursor.style[side] = `${length}px`;
    this.cursor.hidden = false;
    const words = this.say(this.row, this.column, this.values[this.row * this.columns + this.column]);
    showTip(words, { left: box.left + place.left, top: box.top + place.top, width });
  }

  leave() {
    this.cursor.hidden = true;
    hideTip();
  }

  // `shares`, the weights by which the rows are mixed, are shown next to the tokens
  draw(tokens, values, { chosen = undefined, limit = reach(values), shares = null }) {
    const palette = colours(),
      columns = values.length / tokens.length,
      height = 10;
    Object.assign(this, {
      tokens,
      values,
      columns,
      row: Math.min(this.row, tokens.length - 1),
      column: Math.min(this.column, columns - 1),
    });
    Object.assign(this.canvas, { width: columns, height: tokens.length * height });
    const picture = new ImageData(columns, tokens.length * height);
    values.forEach((value, i) => {
      const pixel = [...colour(value, limit, palette), 255],
        first = Math.floor(i / columns) * height * columns + (i % columns);
      // the last line stays empty, to separate the rows
      for (let y = 0; y < height - 1; y++) picture.data.set(pixel, 4 * (first + y * columns));
    });
    this.canvas.getContext("2d").putImageData(picture, 0, 0);
    this.canvas.style.height = `calc(${tokens.length} * var(--row))`;
    this.labels.replaceChildren();
    tokens.forEach((title, row) => {
      const text = shares ? `${format(shares[row])} × ${title}` : title;
      add(this.labels, "span", { title, class: row === chosen ? "chosen" : "" }, text);
    });
    this.mark.hidden = chosen === undefined;
    this.mark.style.top = `calc(${chosen} * var(--row))`;
    drawScale(this.scale, limit, true, palette);
  }
}

// The end of the colour scale: 1 % of the numbers are larger, and get the same colour
export function reach(values) {
  const sorted = Float32Array.from(values, Math.abs).sort();
  return sorted[Math.floor(sorted.length * 0.99)] || 1;
}

// Draw one head's weights, or their differences, as a small picture
export function thumbnail(canvas, weights, count, palette, limit = 1) {
  Object.assign(canvas, { width: count, height: count });
  const picture = new ImageData(count, count);
  weights.forEach((weight, i) => picture.data.set([...colour(weight, limit, palette), 255], 4 * i));
  canvas.getContext("2d").putImageData(picture, 0, 0);
}
