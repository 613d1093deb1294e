// Lay the cells out on slides, start reveal.js once the formulas are typeset, fit pictures and views to their slides,
// and pass unused keys from views to the deck.

const SLIDE = { width: 1280, height: 720 };
const SIZES = [44, 36]; // of text where there is room, with code of the next size; slides.css has the smallest
const CODE = { 44: 36, 36: 30 };

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

const sentenceOf = (slide) => [...slide.querySelectorAll("aside .sentence")].at(-1)?.textContent ?? "";

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
      [...slide.querySelectorAll(".fragment"), last].forEach((step, at) =>
        step.setAttribute("data-fragment-index", at),
      );
      last.classList.add("fragment");
    }
    title = own?.textContent ?? title;
  }
}

// Scale a view alone on its slide so that it fits without scrolling. Each size is tried, because a narrower page is
// also taller: computing it from the current height would enlarge and shrink the view forever.
function enlarge(frame, room) {
  const inside = frame.contentDocument,
    drawing = inside?.querySelector("#vis, #figure");
  if (!drawing) return;
  frame.style.maxWidth = "none";
  for (let times = 1.9; times > 0.7; times -= 0.05) {
    frame.style.width = `${100 / times}%`;
    const height = inside.body.getBoundingClientRect().bottom;
    if (drawing.scrollWidth > drawing.clientWidth || height * times > room) continue;
    const marginBottom = `${height * (times - 1)}px`;
    Object.assign(frame.style, { maxHeight: "none", transform: `scale(${times})`, marginBottom });
    return;
  }
  frame.style.width = "100%";
}

// Take the largest size of text at which all fits, with pictures the smallest; these and views share the remaining height.
function fit(slide) {
  // without the hidden stills of views
  const pictures = [...slide.querySelectorAll("img, iframe")].filter((one) => one.offsetHeight);
  for (const frame of slide.querySelectorAll("iframe")) frame.style.width = "100%";
  for (const one of pictures)
    Object.assign(one.style, { maxWidth: "", maxHeight: "", marginBottom: "", transform: "" });
  const broken = () => [...slide.querySelectorAll("pre")].some((code) => code.scrollWidth > code.clientWidth);
  slide.classList.add("fitting");
  const take = (text) => {
    slide.style.setProperty("--text", text ? `${text}px` : "");
    slide.style.setProperty("--code", text ? `${CODE[text]}px` : "");
  };
  const fits = SIZES.some((size) => {
    take(size);
    return !pictures.length && !broken() && slide.scrollHeight <= SLIDE.height;
  });
  if (!fits) take();
  slide.classList.remove("fitting");
  const over = (slide.scrollHeight - SLIDE.height) / pictures.length,
    room = pictures[0]?.offsetHeight - over;
  if (over > 0) for (const one of pictures) one.style.maxHeight = `${Math.max(160, one.offsetHeight - over)}px`;
  if (pictures.length === 1 && pictures[0].matches("iframe")) enlarge(pictures[0], room);
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
  nameSections();
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
