// Runs in the page of a view before bertviz draws: paints the model view's thumbnails on one canvas, at bertviz's places
// and in its colours, where they have so many lines that as many elements would take a browser ten times as long.

// Paint a thumbnail's lines on the canvas over the drawing, if there are many; whether that was done.
function painted(svg, weights, place) {
  if (!MANY) return false;
  const sheet = svg.querySelector("foreignObject") ?? addSheet(svg);
  svg.append(sheet); // over the backgrounds of all thumbnails so far
  sheet.thumbnails.push([weights, place]);
  paint(sheet, weights, place);
  return true;
}

// All lines of a thumbnail have one colour, so what shows of the ground behind them is a product, in any order. It is
// worked out here: a canvas that draws them one by one takes three times as long.
function paint(sheet, weights, { x1, x2, y1, box }) {
  const pen = sheet.firstChild.getContext("2d"), scale = pen.getTransform().a, lowest = Math.max(VISIBLE, threshold());
  const [left, right, top] = [x1, x2, y1].map((length) => Math.round(length * scale)), step = box * scale;
  const width = right - left, height = Math.ceil(step * Math.max(weights.length, weights[0].length));
  const ground = new Float32Array(width * height).fill(1);
  weights.forEach((row, source) => row.forEach((weight, target) => {
    if (weight < lowest) return;
    const slope = ((target - source) * step) / width, edge = Math.max(1, Math.abs(slope));
    const reach = 1.1 * scale * Math.hypot(1, slope) + edge / 2;
    for (let x = 0, y = (source + 0.5) * step + slope / 2 - 0.5; x < width; x++, y += slope) {
      const from = Math.max(0, Math.ceil(y - reach)), to = Math.min(height - 1, Math.floor(y + reach));
      for (let at = from; at <= to; at++) {
        ground[at * width + x] *= 1 - weight * Math.min(1, (reach - Math.abs(at - y)) / edge);
      }
    }
  }));
  pen.fillStyle = lineColour(); // which makes it #rrggbb
  const ink = [1, 3, 5].map((at) => parseInt(pen.fillStyle.slice(at, at + 2), 16)), behind = groundColor();
  const image = pen.createImageData(width, height), { data } = image;
  for (let pixel = 0, at = 0; pixel < ground.length; pixel++) {
    for (const value of ink) data[at++] = value + (behind - value) * ground[pixel];
    data[at++] = 255;
  }
  pen.putImageData(image, left, top);
}

function repaint(sheet) {
  clear(sheet);
  for (const [weights, place] of sheet.thumbnails) paint(sheet, weights, place);
}

// Of red, green and blue alike.
function groundColor() { return document.documentElement.classList.contains("dark") ? 0 : 255; }

function clear(sheet) {
  const pen = sheet.firstChild.getContext("2d", { alpha: false }); // on its own ground, as faint colours need it
  sheet.style.mixBlendMode = groundColor() ? "multiply" : "screen"; // the ground of a chosen thumbnail shines through
  pen.fillStyle = groundColor() ? "white" : "black";
  pen.fillRect(0, 0, +sheet.getAttribute("width"), +sheet.getAttribute("height"));
}

function addSheet(svg) {
  const [width, height] = ["width", "height"].map((name) => +svg.getAttribute(name));
  const scale = Math.min(window.devicePixelRatio, 16000 / height, Math.sqrt(6e7 / (width * height)));
  const sheet = document.createElementNS("http://www.w3.org/2000/svg", "foreignObject");
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width: width * scale, height: height * scale });
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px`, display: "block" });
  setAttributes(sheet, { width, height, "pointer-events": "none" });
  sheet.append(canvas);
  sheet.thumbnails = []; // what is painted on it
  canvas.getContext("2d", { alpha: false }).scale(scale, scale);
  clear(sheet);
  return sheet;
}
