// Lays the cells out on slides and starts reveal.js when the formulas are set, fits pictures and views to their slides, and
// leaves the keys to the deck.

const SLIDE = { width: 1280, height: 720 };
const RUNNING = 32; // the height of a line that says under which heading a slide stands
const LEGIBLE = 0.84; // of a picture's own size, at which letters of 10 points have 21 pixels; alone it has more (figures.py)

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

// How high a slide is with letters of the least size, its pictures as high as they must be, or `share` of it.
function heightOf(slide, share = 1) {
  for (const one of slide.querySelectorAll("img")) {
    const across = (one.clientWidth / one.naturalWidth) * one.naturalHeight;
    one.style.height = `${share * Math.min(across, one.naturalHeight * LEGIBLE)}px`;
  }
  const height = slide.scrollHeight;
  for (const one of slide.querySelectorAll("img")) one.style.height = "";
  return height;
}

// A picture for which text and code leave far too little room gets a slide of its own: what stands below it, or it with that.
function part(slide) {
  const cells = [...slide.querySelectorAll(":scope > :not(aside)")], first = cells.findIndex((cell) => cell.querySelector("img"));
  if (first < 0 || cells.length < 2 || heightOf(slide, 0.6) <= SLIDE.height) return;
  const after = document.createElement("section");
  after.append(...cells.slice(first || 1));
  after.firstChild.classList.remove("fragment"); // a new slide begins with something
  slide.after(after);
}

// A slide that is half empty is joined by the next of its section, which comes in under it at the next step: so a question
// and its figure meet. Not where there is a view, which grows as far as the slide goes.
function gather() {
  document.body.classList.add("measuring");
  leaves().forEach(part);
  const heights = new Map(leaves().map((slide) => [slide, heightOf(slide)]));
  for (const slide of leaves()) {
    const room = SLIDE.height - (headings(slide).length ? 0 : RUNNING);
    let next = slide.nextElementSibling;
    while (slide.isConnected && next && !headings(next).length && !slide.querySelector("iframe") && !next.querySelector("iframe")) {
      const [above, below] = [heights.get(slide), heights.get(next)];
      if (Math.min(above, below) > SLIDE.height / 2 || above + below > room) break;
      const joined = Object.assign(document.createElement("div"), { className: "fragment" });
      joined.append(...next.childNodes);
      slide.append(joined);
      next.remove();
      heights.set(slide, above + below);
      next = slide.nextElementSibling;
    }
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

// The last of these sizes with which a slide fits and no line of code breaks that did not break before.
function grow(slide, sizes, set) {
  const code = [...slide.querySelectorAll("pre")];
  const lines = () => code.reduce((sum, one) => sum + Math.round(one.offsetHeight / parseFloat(getComputedStyle(one).fontSize)), 0);
  set("");
  const before = lines();
  for (const size of sizes) {
    set(`${size}px`);
    if (slide.scrollHeight <= SLIDE.height && lines() <= before) continue;
    return set(size > sizes[0] ? `${size - 2}px` : "");
  }
}

// A view alone on its slide is drawn as large as fits without scrolling. Each size is tried, since a narrower page is
// also a higher one: to go by the height that it has now would enlarge and shrink it in turn, for ever.
function enlarge(frame, room) {
  const inside = frame.contentDocument, drawing = inside?.getElementById("vis");
  if (!drawing) return;
  for (let times = 1.7; times > 1; times -= 0.05) {
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
  const pictures = [...slide.querySelectorAll("img, iframe")];
  for (const frame of slide.querySelectorAll("iframe")) frame.style.width = "100%";
  for (const one of pictures) Object.assign(one.style, { maxHeight: "", marginBottom: "", transform: "" });
  if (!pictures.length) {
    slide.style.setProperty("--code", "");
    grow(slide, [28, 30, 32, 34, 36, 38, 40], (size) => { slide.style.fontSize = size; });
    grow(slide, [26, 28, 30, 32, 34, 36], (size) => { slide.style.setProperty("--code", size); });
  }
  const over = (slide.scrollHeight - SLIDE.height) / pictures.length;
  if (over > 0) for (const one of pictures) one.style.maxHeight = `${Math.max(160, one.offsetHeight - over)}px`;
  if (pictures.length === 1 && pictures[0].matches("iframe")) enlarge(pictures[0], pictures[0].offsetHeight - over);
}

// A key that a view does not use is the deck's. A click leaves no focus in the view, so that the next arrow turns the slide.
function shareKeys({ target: frame }) {
  const inside = frame.contentDocument;
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
