// Numbers as colours: tables for tokens × tokens, canvases for rows of vectors. Both show a number on hover and focus.
// The page's colour scales, light or dark, as [red, green, blue], from the background to the strongest colour
function colours() {
  const style = getComputedStyle(document.documentElement);
  const stops = (name) =>
    style
      .getPropertyValue(`--scale-${name}`)
      .trim()
      .split(" ")
      .map((hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
  return { above: stops("above"), below: stops("below") };
}

// The colour of a number on a scale from -limit to limit, as [red, green, blue]
function colour(value, limit, palette) {
  const stops = value < 0 ? palette.below : palette.above;
  const place = Math.min(Math.abs(value) / limit, 1) * (stops.length - 1) || 0;
  const [low, high, share] = [stops[Math.floor(place)], stops[Math.ceil(place)], place % 1];
  return low.map((channel, i) => Math.round(channel + (high[i] - channel) * share));
}

const light = ([r, g, b]) =>
  [r, g, b].map((v) => (v / 255) ** 2.2).reduce((sum, v, i) => sum + v * [0.21, 0.72, 0.07][i], 0);
const rgb = (channels) => `rgb(${channels.join(" ")})`;
const written = (value, digits = 2) =>
  (Number.isNaN(value) ? "–" : value.toFixed(digits)).replace("-", "−").replace(/^−(0\.?0*)$/, "$1");

// Make an element with properties and children; strings become text nodes, never HTML
function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function showTip(text, { left, top, width }) {
  const tip = document.getElementById("tip");
  tip.textContent = text;
  tip.hidden = false;
  const x = left + width / 2 - tip.offsetWidth / 2;
  tip.style.left = `${Math.max(4, Math.min(x, document.documentElement.clientWidth - tip.offsetWidth - 4))}px`;
  tip.style.top = `${top > tip.offsetHeight + 12 ? top - tip.offsetHeight - 8 : top + 28}px`;
}

function hideTip() {
  document.getElementById("tip").hidden = true;
}

// The cell that an arrow key leads to in a grid of rows × columns; undefined for other keys
function step(key, row, column, rows, columns) {
  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  const inside = (index, count) => Math.max(0, Math.min(count - 1, index));
  if (key === "Home") return [row, 0];
  if (key === "End") return [row, columns - 1];
  return steps[key] && [inside(row + steps[key][0], rows), inside(column + steps[key][1], columns)];
}

// The colour scale below each drawing
function scale(limit, signed, palette) {
  const stops = Array.from({ length: 11 }, (_, i) =>
    rgb(colour(((signed ? i - 5 : i / 2) / 5) * limit, limit, palette)),
  );
  const ramp = element("span", { className: "ramp" });
  ramp.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
  return [written(signed ? -limit : 0, 1), ramp, written(limit, 1)];
}

// A table of tokens × tokens. `say(row, column, value)` returns the text for a cell.
class Matrix {
  constructor(host, caption, say, onRow) {
    Object.assign(this, { caption, say, onRow });
    this.table = element("table", { className: "matrix" });
    this.scale = element("p", { className: "scale" });
    host.append(element("h3", {}, caption), element("div", { className: "scroll" }, this.table), this.scale);
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
    const heading = (token, scope) => element("th", { scope, title: token }, element("span", {}, token));
    const top = element("tr", {}, element("td", {}), ...tokens.map((token) => heading(token, "col")));
    this.cells = tokens.map((_, row) =>
      tokens.map((__, column) => {
        const cell = element("td", { tabIndex: row || column ? -1 : 0 });
        Object.assign(cell.dataset, { row, column });
        return cell;
      }),
    );
    const rows = this.cells.map((cells, row) => element("tr", {}, heading(tokens[row], "row"), ...cells));
    const caption = element("caption", { className: "unseen" }, this.caption);
    this.table.replaceChildren(caption, element("thead", {}, top), element("tbody", {}, ...rows));
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
        cell.textContent = written(value);
        cell.style.background = rgb(ground);
        cell.style.color = light(ground) > 0.18 ? "black" : "white";
        cell.parentElement.classList.toggle("chosen", row === chosen);
      }),
    );
    this.scale.replaceChildren(...scale(limit, signed, palette));
  }
}

// Rows of vectors, one token a row, one number a column
class Rows {
  constructor(host, caption, say, onRow) {
    Object.assign(this, { say, onRow, row: 0, column: 0 });
    this.labels = element("div", { className: "labels" });
    this.canvas = element("canvas", { tabIndex: 0, ariaLabel: `${caption}. Use the arrow keys to read its numbers.` });
    this.canvas.setAttribute("role", "application");
    this.cursor = element("div", { className: "cursor", hidden: true });
    this.mark = element("div", { className: "mark" });
    const field = element("div", { className: "field" }, this.canvas, this.mark, this.cursor);
    this.scale = element("p", { className: "scale" });
    host.append(element("h3", {}, caption), element("div", { className: "rows" }, this.labels, field), this.scale);
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
      inside = (share, count) => Math.max(0, Math.min(count - 1, Math.floor(share * count)));
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
    document.getElementById("spoken").textContent = document.getElementById("tip").textContent;
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
  draw(tokens, values, { chosen, limit = reach(values), shares }) {
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
    this.labels.replaceChildren(
      ...tokens.map((token, row) =>
        element(
          "span",
          { title: token, className: row === chosen ? "chosen" : "" },
          shares ? `${written(shares[row])} × ${token}` : token,
        ),
      ),
    );
    this.mark.hidden = chosen === undefined;
    this.mark.style.top = `calc(${chosen} * var(--row))`;
    this.scale.replaceChildren(...scale(limit, true, palette));
  }
}

// The end of the colour scale: 1 % of the numbers are larger, and get the same colour
function reach(values) {
  const sorted = Float32Array.from(values, Math.abs).sort();
  return sorted[Math.floor(sorted.length * 0.99)] || 1;
}

// Draw one head's weights, or their differences, as a small picture
function thumbnail(canvas, weights, count, palette, limit = 1) {
  Object.assign(canvas, { width: count, height: count });
  const picture = new ImageData(count, count);
  weights.forEach((weight, i) => picture.data.set([...colour(weight, limit, palette), 255], 4 * i));
  canvas.getContext("2d").putImageData(picture, 0, 0);
}
