// "Save picture", in every view and figure: what is seen of it, as shapes and text of an SVG, or as a PNG. Below it is
// said what was drawn, and what the reader has chosen.

import { add, by } from "./elements.js";

const saving = by("save");
const INHERITED = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-opacity",
  "stroke-dasharray",
  "font-size",
  "font-weight",
  "text-anchor",
  "paint-order",
  "visibility",
  "image-rendering",
];
const OWN = { opacity: "1", "vector-effect": "none", "fill-rule": "nonzero" };

// A copy of what is in an SVG, with the style that it has on this page.
function copyShape(element, parent, around = {}) {
  const style = getComputedStyle(element);
  if (style.display === "none" || style.opacity === "0" || element.tagName === "style") return;
  const copy = parent.appendChild(element.cloneNode(false)),
    now = {};
  for (const name of ["class", "style", "id", "tabindex", "role", ...INHERITED]) copy.removeAttribute(name);
  for (const name of INHERITED) {
    now[name] = style.getPropertyValue(name);
    if (now[name] !== around[name]) copy.setAttribute(name, now[name]);
  }
  for (const [name, usual] of Object.entries(OWN)) {
    if (style.getPropertyValue(name) !== usual) copy.setAttribute(name, style.getPropertyValue(name));
  }
  if (element.style.transform) copy.setAttribute("style", `transform: ${element.style.transform}`);
  for (const child of element.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) copy.append(child.textContent);
    else if (child.nodeType === Node.ELEMENT_NODE) copyShape(child, copy, now);
  }
}

const isControl = (element) =>
  element.matches(
    "#tools, .rests, input:not([type=number]), button:not([role], .cell, [aria-pressed]), option, summary, " +
      "details:not([open]), script, style",
  ) ||
  (element.matches("label") && element.querySelector("input:is([type=radio], [type=checkbox]):not(:checked)"));

// What is in the page: boxes with a ground or an edge, text line by line, and drawings.
function copyBoxes(element, parent, { x, y }) {
  const style = getComputedStyle(element),
    box = element.getBoundingClientRect();
  if (style.display === "none" || style.visibility === "hidden" || style.opacity === "0" || isControl(element)) return;
  const at = { x: box.x - x, y: box.y - y, width: box.width, height: box.height };
  if (element.id === "bertviz") return copyBoxes(element.contentDocument.querySelector("svg"), parent, { x: 0, y: 0 });
  if (element.tagName === "svg") {
    const drawing = add(parent, "svg", {
      ...at,
      viewBox: element.getAttribute("viewBox") ?? `0 0 ${box.width} ${box.height}`,
      overflow: "visible",
    });
    for (const child of element.children) copyShape(child, drawing);
    return;
  }
  const isInput = element.matches("input, select, textarea");
  const edge = !isInput && parseFloat(style.borderBottomWidth) && style.borderBottomStyle !== "none",
    ground = style.backgroundColor;
  if (!isInput && box.width && (edge || !/^rgba\(.* 0\)$|transparent/.test(ground))) {
    add(parent, "rect", {
      ...at,
      rx: parseFloat(style.borderRadius) || 0,
      fill: ground,
      stroke: edge ? style.borderBottomColor : "none",
    });
  }
  if (style.backgroundImage.startsWith("repeating"))
    for (let right = 0; right <= at.width - at.height; right += 10) {
      const d = `M${at.x + right} ${at.y + at.height}l${at.height} ${-at.height}`; // hatching
      add(parent, "path", { d, stroke: style.borderBottomColor, "stroke-width": 2 });
    }
  const letters = { fill: style.color, "font-size": style.fontSize, "font-weight": style.fontWeight };
  if (element.matches("fieldset")) {
    // what was chosen stands beside its name, wherever its button is
    const text = `${element.querySelector("legend").textContent} ${element.querySelector(":checked").value}`;
    return add(parent, "text", { ...letters, x: at.x, y: at.y + 20 }, text);
  }
  const [chosen] = style.boxShadow.match(/(rgb|color)[^)]*\)(?!.*(rgb|color))/) ?? [];
  if (chosen) add(parent, "rect", { ...at, rx: 5, fill: "none", stroke: chosen, "stroke-width": 3 });
  if (isInput) {
    const text = element.value && (element.selectedOptions?.[0].text ?? element.value);
    text
      .split("\n")
      .forEach((line, row) => add(parent, "text", { ...letters, x: at.x + 8, y: at.y + 20 * (row + 1) }, line));
    return;
  }
  for (const child of element.childNodes) {
    if (child.nodeType === Node.ELEMENT_NODE) copyBoxes(child, parent, { x, y });
    else if (child.nodeType === Node.TEXT_NODE) copyText(child, parent, { x, y }, letters);
  }
}

function copyText(node, parent, { x, y }, letters) {
  const range = document.createRange(),
    lines = [];
  for (const { index, 0: word } of node.textContent.matchAll(/\S+/g)) {
    range.setStart(node, index);
    range.setEnd(node, index + word.length);
    const box = range.getBoundingClientRect(),
      last = lines.at(-1);
    if (last && Math.abs(last.y - box.y) < 4) last.words.push(word);
    else if (box.width) lines.push({ x: box.x, y: box.y, height: box.height, words: [word] });
  }
  for (const line of lines) {
    add(parent, "text", { ...letters, x: line.x - x, y: line.y - y + line.height * 0.78 }, line.words.join(" "));
  }
}

// Words in lines of so many letters.
function wrapped(text, letters) {
  const lines = [""];
  for (const word of text.split(/\s+/)) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (longer.length > letters && lines.at(-1)) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}

function makePicture() {
  const drawn = by("figure") ?? by("view"),
    { x, y, width, height } = drawn.getBoundingClientRect();
  const { color, backgroundColor, fontFamily } = getComputedStyle(document.body),
    ink = { fill: color, x: 0 };
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const wide = Math.ceil(
    Math.max(width, ...[...drawn.querySelectorAll("svg")].map((one) => one.getBoundingClientRect().right - x)),
  );
  add(svg, "title", {}, document.title);
  const ground = add(svg, "rect", { x: -12, y: -12, fill: backgroundColor });
  let low = 0;
  const write = (text, size, style) =>
    wrapped(text, wide / (0.58 * size)).forEach((line) => {
      add(svg, "text", { ...ink, y: (low += size * 1.35), "font-size": size, ...style }, line);
    });
  write(document.querySelector("h1").textContent, 16, { "font-weight": "bold" });
  const body = add(svg, "g", { transform: `translate(0 ${(low += 10)})` });
  copyBoxes(drawn, body, { x, y });
  low += height + 6;
  const said = by("say"),
    state = window.pictureState?.();
  if (!drawn.contains(said) && !said.matches(".rests") && said.innerText && !state?.includes(said.textContent))
    write(said.innerText, 13);
  for (const text of [state, by("details").textContent]) if (text) write(text, 12, { class: "caption" });
  const [all, high] = [wide + 24, Math.ceil(low) + 24];
  for (const one of [ground, svg]) one.setAttribute("width", all), one.setAttribute("height", high);
  svg.setAttribute("viewBox", `-12 -12 ${all} ${high}`);
  svg.setAttribute("font-family", fontFamily);
  return new XMLSerializer().serializeToString(svg);
}

async function asPng(text) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), {
    width: 2 * image.width,
    height: 2 * image.height,
  });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

saving.addEventListener("click", async ({ target }) => {
  const { value: kind } = target;
  if (kind === "link") {
    await navigator.clipboard.writeText(location.href);
    target.textContent = "Copied";
    return setTimeout(() => {
      target.textContent = "Copy link";
    }, 1500);
  }
  if (!kind) return;
  const text = makePicture(),
    file = kind === "svg" ? new Blob([text], { type: "image/svg+xml" }) : await asPng(text);
  const address = URL.createObjectURL(file),
    name = document.querySelector("h1").textContent.toLowerCase();
  const link = Object.assign(document.createElement("a"), {
    href: address,
    download: `${name
      .replace(/[^\p{L}\p{N}]+/gu, "_")
      .replace(/^_/, "")
      .slice(0, 60)}.${kind}`,
  });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
});
