// Starts reveal.js when the formulas are set, fits each slide to the window, and names the section below it.

const leaves = () => [...document.querySelectorAll(".slides section")].filter((s) => !s.querySelector("section"));

// Code that makes a picture stands beside it, if both together are too tall.
function placePictures() {
  for (const cell of document.querySelectorAll(".jp-CodeCell")) {
    const picture = cell.querySelector(".jp-OutputArea img");
    const lines = cell.querySelector("pre").textContent.trim().split("\n").length;
    if (picture && lines > 6) cell.classList.add("beside");
  }
}

// Shrink what is taller than a slide, down to half its size; beyond that the slide scrolls.
function fit(slide) {
  const { height } = Reveal.getConfig();
  slide.style.zoom = 1;
  const zoom = Math.max(0.5, Math.min(1, height / slide.scrollHeight));
  slide.style.zoom = zoom;
  slide.style.maxHeight = `${height / zoom}px`;
  slide.style.overflowY = slide.scrollHeight * zoom > height + 2 ? "auto" : "visible";
}

function show(slide) {
  if (!slide) return;
  fit(slide);
  Reveal.layout();
  const here = leaves().indexOf(slide);
  const titles = leaves().slice(0, here + 1).flatMap((s) => [...s.querySelectorAll("h1, h2, h3")]);
  document.getElementById("section").textContent = titles.at(-1)?.textContent ?? "";
}

function start() {
  placePictures();
  Reveal.on("ready", ({ currentSlide }) => show(currentSlide));
  Reveal.on("slidechanged", ({ currentSlide }) => show(currentSlide));
  Reveal.initialize({
    width: 1280, height: 720, margin: 0.04, center: false, hash: true, transition: "none",
    slideNumber: "c/t", navigationMode: "linear", pdfSeparateFragments: false,
  });
  // a view grows when it is drawn
  const grown = new ResizeObserver(() => show(Reveal.getCurrentSlide()));
  for (const frame of document.querySelectorAll("iframe")) grown.observe(frame);
}

window.MathJax = {
  tex: { inlineMath: [["$", "$"]] },
  options: { enableMenu: false, ignoreHtmlClass: "jp-CodeCell" },
  startup: { pageReady: () => MathJax.startup.defaultPageReady().then(start) },
};
