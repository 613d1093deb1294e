// Lay the cells out on slides, start reveal.js once the formulas are typeset, fit pictures and views to their slides,
// and pass unused keys from views to the deck.

const SLIDE = { width: 1280, height: 720 };
const RUNNING = 32; // height of the line that repeats the current heading
const SENTENCE = 76; // height of a sentence of two lines in its place
const SIZES = ["44px", "36px"]; // of text where there is room; slides.css has the smallest, and the size of code
const LEGIBLE = 0.86; // scale of a figure at which 10-point text is 24 pixels high (larger_text.py)
// The minimum height to which a larger figure, diagram or view may shrink
const PICTURE = { png: 640, svg: 480, frame: 640 };

const leaves = () => [...document.querySelectorAll(".slides section")].filter((s) => !s.querySelector("section"));

const headings = (slide) => [...slide.querySelectorAll("h1, h2, h3")].filter((heading) => !heading.closest("aside"));

// Indent the continuation of a wrapped line of code, so that Python's indentation stays readable.
function hang() {
  for (const code of document.querySelectorAll(".highlight pre")) {
    const lines = code.innerHTML.replace(/\n$/, "").split("\n");
    code.innerHTML = lines.map((line) => `<span class="line">${line}</span>`).join("");
    for (const line of code.children) line.style.setProperty("--indent", `${line.textContent.search(/[^ ]|$/)}ch`);
  }
}

const kindOf = (picture) =>
  picture.matches("iframe") ? "frame" : /^data:image\/svg|\.svg$/.test(picture.src) ? "svg" : "png";

const sentenceOf = (slide) => [...slide.querySelectorAll("aside .sentence")].at(-1)?.textContent ?? "";

// The height available on a slide, less the line that repeats the heading if the slide has none.
const roomOn = (slide) => SLIDE.height - (headings(slide).length ? 0 : sentenceOf(slide) ? SENTENCE : RUNNING);

// The height of a slide at the smallest text size and the minimum height of its pictures.
function heightOf(slide) {
  const pictures = [...slide.querySelectorAll("img, iframe")],
    before = pictures.map((one) => one.style.height);
  for (const one of pictures) {
    const kind = kindOf(one),
      across = (one.clientWidth / one.naturalWidth) * one.naturalHeight;
    const own = { png: Math.min(across, one.naturalHeight * LEGIBLE), svg: across, frame: Infinity }[kind];
    one.style.height = `${Math.min(own, PICTURE[kind])}px`;
  }
  const height = slide.scrollHeight;
  pictures.forEach((one, at) => {
    one.style.height = before[at];
  });
  return height;
}

// Split a cell: text up to and after a picture, or a picture and the output below it.
function partsOf(cell) {
  const text = cell.querySelector(".jp-MarkdownOutput"),
    at = [...(text?.children ?? [])].findIndex((one) => one.querySelector("img"));
  const below = text ? [...text.children].slice(at < 0 ? Infinity : at + 1) : [];
  below.push(...cell.querySelectorAll(".jp-OutputArea-child:has(img, iframe) ~ .jp-OutputArea-child"));
  if (!below.length) return [cell];
  const rest = cell.cloneNode(false);
  rest.append(...below);
  return [cell, rest];
}

// Split a slide with a picture that does not fit into one slide for each part.
function part(slide) {
  if (!slide.querySelector("img, iframe") || heightOf(slide) <= roomOn(slide)) return;
  let last = slide;
  for (const step of slide.querySelectorAll(":scope > .fragment")) {
    for (const cell of step.querySelectorAll(":scope > .jp-Cell")) cell.classList.add("fragment");
    step.replaceWith(...step.children);
  }
  const parts = [...slide.children].flatMap((child) => (child.matches("aside") ? [child] : partsOf(child)));
  slide.replaceChildren();
  for (const one of parts) {
    if (one.matches("aside") || !slide.childElementCount) last.append(one);
    else {
      last.after(document.createElement("section"));
      last = last.nextElementSibling;
      one.classList.remove("fragment"); // the first element of a slide is always visible
      last.append(one);
    }
  }
}

// Repeat the current heading at the top of a slide without a heading. At the last key press, the sentence that matters
// takes its place.
function nameSections() {
  let title = "";
  for (const slide of leaves()) {
    const own = headings(slide).at(-1),
      finding = sentenceOf(slide);
    const heading = own ?? Object.assign(document.createElement("p"), { className: "running", textContent: title });
    if (!own) slide.prepend(heading);
    if (finding) {
      const both = Object.assign(document.createElement("div"), { className: "heading" });
      const last = Object.assign(document.createElement("p"), { className: "sentence", textContent: finding });
      heading.replaceWith(both);
      both.append(heading, last);
      [...slide.querySelectorAll(".fragment"), last].forEach((step, at) => step.setAttribute("data-fragment-index", at));
      last.classList.add("fragment");
    }
    title = own?.textContent ?? title;
  }
}

// Enlarge a view alone on its slide as far as it fits without scrolling. Each size is tried, because a narrower page is
// also taller: computing it from the current height would enlarge and shrink the view forever.
function enlarge(frame, room) {
  const inside = frame.contentDocument,
    drawing = inside?.querySelector("#vis, #figure");
  if (!drawing) return;
  for (let times = 1.9; times > 1; times -= 0.05) {
    frame.style.width = `${100 / times}%`;
    const height = inside.body.getBoundingClientRect().bottom;
    if (drawing.scrollWidth > drawing.clientWidth || height * times > room) continue;
    Object.assign(frame.style, { transform: `scale(${times})`, marginBottom: `${height * (times - 1)}px` });
    return;
  }
  frame.style.width = "100%";
}

// Take the largest size of text at which all fits, with pictures the smallest; these and views share the remaining height.
function fit(slide) {
  // without the hidden stills of views
  const pictures = [...slide.querySelectorAll("img, iframe")].filter((one) => one.offsetHeight);
  for (const frame of slide.querySelectorAll("iframe")) frame.style.width = "100%";
  for (const one of pictures) Object.assign(one.style, { maxHeight: "", marginBottom: "", transform: "" });
  const broken = () => [...slide.querySelectorAll("pre")].some((code) => code.scrollWidth > code.clientWidth);
  slide.classList.add("fitting");
  slide.style.fontSize = SIZES.find((size) => {
    slide.style.fontSize = size;
    return !pictures.length && !broken() && slide.scrollHeight <= SLIDE.height;
  }) ?? "";
  slide.classList.remove("fitting");
  const over = (slide.scrollHeight - SLIDE.height) / pictures.length;
  if (over > 0) for (const one of pictures) one.style.maxHeight = `${Math.max(160, one.offsetHeight - over)}px`;
  if (pictures.length === 1 && pictures[0].matches("iframe")) enlarge(pictures[0], pictures[0].offsetHeight - over);
}

// Pass keys that a view does not use to the deck. A click in a view releases the focus, so that the next arrow turns
// the slide.
function shareKeys({ target: frame }) {
  const inside = frame.contentDocument;
  inside.documentElement.classList.add("on-slide");
  let byPointer = false;
  const leave = () => {
    const choosing = inside.activeElement?.matches("select, input:not([type=range])");
    if (byPointer && !choosing) inside.activeElement?.blur();
  };
  inside.addEventListener("pointerdown", () => {
    byPointer = true;
  });
  inside.addEventListener("click", () => setTimeout(leave));
  inside.addEventListener("change", () => {
    if (byPointer) inside.activeElement?.blur();
  });
  inside.defaultView.addEventListener("keydown", (event) => {
    byPointer = false;
    const turns = ["PageUp", "PageDown"].includes(event.key);
    const typing =
      event.target.closest?.("select, input, button, [tabindex]") || event.ctrlKey || event.altKey || event.metaKey;
    if (event.defaultPrevented || (typing && !turns) || event.key === "Tab") return;
    event.preventDefault();
    Reveal.triggerKey(event.keyCode);
  });
}

async function start() {
  await Promise.all([...document.querySelectorAll(".slides img")].map((one) => one.decode()));
  hang();
  document.body.classList.add("measuring");
  leaves().forEach(part);
  nameSections();
  document.body.classList.remove("measuring");
  Reveal.on("ready", ({ currentSlide }) => fit(currentSlide));
  Reveal.on("slidechanged", ({ currentSlide }) => fit(currentSlide));
  Reveal.initialize({
    ...SLIDE,
    margin: 0.02,
    center: false,
    hash: true,
    transition: "none",
    slideNumber: "c/t",
    navigationMode: "linear",
    pdfSeparateFragments: false,
    plugins: [RevealNotes],
  });
  const grown = new ResizeObserver(() => fit(Reveal.getCurrentSlide())); // a view grows when it is rendered
  for (const frame of document.querySelectorAll("iframe")) {
    grown.observe(frame);
    frame.addEventListener("load", shareKeys);
  }
}

window.MathJax = {
  tex: { inlineMath: [["$", "$"]] },
  options: { enableMenu: false, ignoreHtmlClass: "jp-CodeCell" },
  startup: { pageReady: () => MathJax.startup.defaultPageReady().then(start) },
};
