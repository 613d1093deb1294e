// Starts reveal.js when the formulas are set, fits pictures and views to their slides, and leaves the keys to the deck.

const leaves = () => [...document.querySelectorAll(".slides section")].filter((s) => !s.querySelector("section"));

// A slide without a heading of its own says at its top under which one it stands.
function nameSections() {
  let title = "";
  for (const slide of leaves()) {
    const headings = [...slide.querySelectorAll("h1, h2, h3")].filter((heading) => !heading.closest("aside"));
    if (!headings.length) {
      const running = Object.assign(document.createElement("p"), { className: "running", textContent: title });
      slide.prepend(running);
    }
    title = headings.at(-1)?.textContent ?? title;
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
    if (slide.scrollHeight <= Reveal.getConfig().height && lines() <= before) continue;
    return set(size > sizes[0] ? `${size - 2}px` : "");
  }
}

// A view alone on its slide is drawn larger, as far as the height goes; a narrower page draws the same.
function enlarge(frame, room) {
  const times = Math.max(1, Math.min(1.7, room / frame.offsetHeight));
  const more = frame.offsetHeight * (times - 1);
  Object.assign(frame.style, { transform: `scale(${times})`, width: `${100 / times}%`, marginBottom: `${more}px` });
}

// First the text grows, then the code, and nothing shrinks; pictures and views share the height that is left.
function fit(slide) {
  const pictures = [...slide.querySelectorAll("img, iframe")];
  for (const one of pictures) Object.assign(one.style, { maxHeight: "", marginBottom: "", transform: "" });
  if (!pictures.length) {
    slide.style.setProperty("--code", "");
    grow(slide, [28, 30, 32, 34, 36], (size) => { slide.style.fontSize = size; });
    grow(slide, [26, 28, 30, 32], (size) => { slide.style.setProperty("--code", size); });
  }
  const over = (slide.scrollHeight - Reveal.getConfig().height) / pictures.length;
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

function start() {
  nameSections();
  Reveal.on("ready", ({ currentSlide }) => fit(currentSlide));
  Reveal.on("slidechanged", ({ currentSlide }) => fit(currentSlide));
  Reveal.initialize({
    width: 1280, height: 720, margin: 0.02, center: false, hash: true, transition: "none",
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
