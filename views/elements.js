// Elements of a page, for views, figures, the explorer and type_bert.html.

export const by = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

// Add a new element to its parent, an SVG element inside an SVG. Text is set as text, never as HTML.
export function add(parent, tag, attributes = {}, text = null) {
  const inSvg = tag === "svg" || parent.namespaceURI === SVG;
  const element = inSvg ? document.createElementNS(SVG, tag) : document.createElement(tag);
  set(element, attributes);
  if (text !== null) element.textContent = text;
  return parent.appendChild(element);
}

export function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
}

// The stops of the page's scale of colours "above" or "below" zero, from the ground to the strongest.
export const stopsOf = (name) =>
  getComputedStyle(document.documentElement)
    .getPropertyValue(`--scale-${name}`)
    .trim()
    .split(" ")
    .map((hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));

// A scale of colours in steps, each a box that a saved picture has too, between the texts of its ends.
export function ramp(parent, ends, colour) {
  const steps = add(parent, "span", { class: "ramp" });
  for (let step = 0; step < 18; step++) add(steps, "i", { style: `background: ${colour(step / 17)}` });
  parent.replaceChildren(`${ends[0]} `, steps, ` ${ends[1]}`);
}

// A text may be longer than its column.
export function fitText(text, most) {
  if (text.getComputedTextLength() > most) set(text, { textLength: most, lengthAdjust: "spacingAndGlyphs" });
}

// The size of letters in an SVG's own units: as large as everywhere else on the page.
export const letterSize = (svg) => parseFloat(getComputedStyle(document.body).fontSize) / (svg.getScreenCTM()?.a || 1);

export const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
// Call `moved` with the direction of an arrow key, [right, down].
export function onArrows(element, moved) {
  element.addEventListener("keydown", (event) => {
    if (!ARROWS[event.key]) return;
    event.preventDefault();
    moved(...ARROWS[event.key], event);
  });
}
