// Lays the cells out on slides and starts reveal.js when the formulas are set, fits pictures and views to their slides, and
// leaves the keys to the deck.

const SLIDE = { width: 1280, height: 720 };
const RUNNING = 32; // the height of a line that says under which heading a slide stands
const LEGIBLE = 0.86; // of a figure's own size, at which letters of 10 points have 24 pixels (figures.py)
const PICTURE = { png: 640, svg: 480, frame: 640 }; // the height at least of what is larger: a figure, a diagram, a view

const leaves = () => [...document.querySelectorAll(".slides section")].filter((s) => !s.querySelector("section"));

const headings = (slide) => [...slide.querySelectorAll("h1, h2, h3")].filter((heading) => !heading.closest("aside"));

// A line of code that breaks goes on under itself, so that Python's indentation stays true.
function hang() {
  for (const code of document.querySelectorAll(".highlight pre")) {
    const lines = code.innerHTML.replace(/\n$/, "").split("\n");
    code.innerHTML = lines.map((line) => `<span class="line">${line}</span>`).join("");
    for (const line of code.children) line.style.setProperty("--indent", `${line.textContent.search(/[^ ]|$/)}ch`);
  }
}

const kindOf = (picture) => (picture.matches("iframe") ? "frame" : /^data:image\/svg|\.svg$/.test(picture.src) ? "svg" : "png");

// The height of a slide below the line that says under which heading it stands, if it has none of its own.
const roomOn = (slide) => SLIDE.height - (headings(slide).length ? 0 : RUNNING);

// How high a slide is with letters of the least size, its pictures as high as they must be.
function heightOf(slide) {
  const pictures = [...slide.querySelectorAll("img, iframe")], before = pictures.map((one) => one.style.height);
  for (const one of pictures) {
    const kind = kindOf(one), across = (one.clientWidth / one.naturalWidth) * one.naturalHeight;
    const own = { png: Math.min(across, one.naturalHeight * LEGIBLE), svg: across, frame: Infinity }[kind];
    one.style.height = `${Math.min(own, PICTURE[kind])}px`;
  }
  const height = slide.scrollHeight;
  pictures.forEach((one, at) => { one.style.height = before[at]; });
  return height;
}

// A cell in parts: its text up to a picture and after it, its code and what that draws, or a picture and what is printed below.
function partsOf(cell) {
  const text = cell.querySelector(".jp-MarkdownOutput"), at = [...(text?.children ?? [])].findIndex((one) => one.querySelector("img"));
  const below = text ? [...text.children].slice(at < 0 ? Infinity : at + 1) : [];
  if (cell.querySelector(".jp-Cell-inputWrapper pre")) below.push(...cell.querySelectorAll(".jp-Cell-outputWrapper:has(img, iframe)"));
  else below.push(...cell.querySelectorAll(".jp-OutputArea-child:has(img, iframe) ~ .jp-OutputArea-child"));
  if (!below.length) return [cell];
  const rest = cell.cloneNode(false);
  rest.append(...below);
  return [cell, rest];
}

// A slide with a picture on which there is too little room for all becomes one slide for each of its parts.
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
      last.after(Object.assign(document.createElement("section"), { className: "part" }));
      last = last.nextElementSibling;
      last.append(one);
    }
  }
}

// A slide is joined by the next of its section where that has room on it: so a question and its figure meet. What is
// joined comes in at the next step, if it did not stand there from the beginning.
function gather() {
  document.body.classList.add("measuring");
  leaves().forEach(part);
  const heights = new Map(leaves().map((slide) => [slide, heightOf(slide)]));
  for (const slide of leaves()) {
    const room = roomOn(slide);
    let next = slide.nextElementSibling;
    while (slide.isConnected && next && !headings(next).length && heights.get(slide) + heights.get(next) <= room) {
      const step = slide.lastElementChild, isPart = next.matches(".part");
      if (isPart && step?.matches("div.fragment")) step.append(...next.childNodes); // never before what it belongs to
      else {
        const joined = Object.assign(document.createElement("div"), { className: isPart ? "" : "fragment" });
        joined.append(...next.childNodes);
        slide.append(joined);
      }
      heights.set(slide, heights.get(slide) + heights.get(next));
      next.remove();
      next = slide.nextElementSibling;
    }
    slide.firstElementChild?.classList.remove("fragment"); // a slide begins with something
  }
  document.body.classList.remove("measuring");
}

// A slide without a heading of its own says at its top under which one it stands.
function nameSections() {
  let title = "";
  for (const slide of leaves()) {
    const own = headings(slide);
    if (!own.length) {
      const running = Object.assign(document.createElement("p"), { className: "running", textContent: title });
      slide.prepend(running);
    }
    title = own.at(-1)?.textContent ?? title;
  }
}

// The last of these sizes with which a slide fits and no line of code breaks that did not break before; on a slide of which
// two fifths are not used, lines may.
function grow(slide, sizes, set) {
  const code = [...slide.querySelectorAll("pre")];
  const lines = () => code.reduce((sum, one) => sum + Math.round(one.offsetHeight / parseFloat(getComputedStyle(one).fontSize)), 0);
  set("");
  const before = lines();
  let used = slide.scrollHeight;
  for (const size of sizes) {
    set(`${size}px`);
    if (slide.scrollHeight > SLIDE.height || (lines() > before && used >= SLIDE.height * 0.4)) {
      return set(size > sizes[0] ? `${size - 2}px` : "");
    }
    used = slide.scrollHeight;
  }
}

// A view alone on its slide is drawn as large as fits without scrolling. Each size is tried, since a narrower page is
// also a higher one: to go by the height that it has now would enlarge and shrink it in turn, for ever.
function enlarge(frame, room) {
  const inside = frame.contentDocument, drawing = inside?.querySelector("#vis, #figure");
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

// First the text grows, then the code, and nothing shrinks; pictures and views share the height that is left.
function fit(slide) {
  const pictures = [...slide.querySelectorAll("img, iframe")].filter((one) => one.offsetHeight); // less stills of views
  for (const frame of slide.querySelectorAll("iframe")) frame.style.width = "100%";
  for (const one of pictures) Object.assign(one.style, { maxHeight: "", marginBottom: "", transform: "" });
  if (!pictures.length) {
    slide.style.setProperty("--code", "");
    grow(slide, [28, 30, 32, 34, 36, 38, 40, 42, 44, 46], (size) => { slide.style.fontSize = size; });
    grow(slide, [26, 28, 30, 32, 34, 36, 38, 40], (size) => { slide.style.setProperty("--code", size); });
  }
  const over = (slide.scrollHeight - SLIDE.height) / pictures.length;
  if (over > 0) for (const one of pictures) one.style.maxHeight = `${Math.max(160, one.offsetHeight - over)}px`;
  if (pictures.length === 1 && pictures[0].matches("iframe")) enlarge(pictures[0], pictures[0].offsetHeight - over);
}

// A key that a view does not use is the deck's. A click leaves no focus in the view, so that the next arrow turns the slide.
function shareKeys({ target: frame }) {
  const inside = frame.contentDocument;
  inside.documentElement.classList.add("on-slide");
  let byPointer = false;
  const leave = () => {
    const choosing = inside.activeElement?.matches("select, input:not([type=range])");
    if (byPointer && !choosing) inside.activeElement?.blur();
  };
  inside.addEventListener("pointerdown", () => { byPointer = true; });
  inside.addEventListener("click", () => setTimeout(leave));
  inside.addEventListener("change", () => { if (byPointer) inside.activeElement?.blur(); });
  inside.defaultView.addEventListener("keydown", (event) => {
    byPointer = false;
    const turns = ["PageUp", "PageDown"].includes(event.key);
    const typing = event.target.closest?.("select, input, button, [tabindex]") || event.ctrlKey || event.altKey || event.metaKey;
    if (event.defaultPrevented || (typing && !turns) || event.key === "Tab") return;
    event.preventDefault();
    Reveal.triggerKey(event.keyCode);
  });
}

async function start() {
  await Promise.all([...document.querySelectorAll(".slides img")].map((one) => one.decode()));
  hang();
  gather();
  nameSections();
  Reveal.on("ready", ({ currentSlide }) => fit(currentSlide));
  Reveal.on("slidechanged", ({ currentSlide }) => fit(currentSlide));
  Reveal.initialize({
    ...SLIDE, margin: 0.02, center: false, hash: true, transition: "none",
    slideNumber: "c/t", navigationMode: "linear", pdfSeparateFragments: false, plugins: [RevealNotes],
  });
  const grown = new ResizeObserver(() => fit(Reveal.getCurrentSlide())); // a view grows when it is drawn
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
