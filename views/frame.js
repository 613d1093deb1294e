// What a page in a frame takes from the page around it: light or dark, the ground behind it, and room for its height.

export const root = document.documentElement;

// Dark where the letters around the frame are light, and, in a saved page, where the reader's system asks for it.
function isDark() {
  if (!window.frameElement) return window.matchMedia("(prefers-color-scheme: dark)").matches;
  const [red, green, blue] = window.parent // Firefox gives a hidden frame no style of its own
    .getComputedStyle(window.frameElement)
    .color.match(/[\d.]+/g)
    .map(Number);
  return red + green + blue > 384;
}

// The colour behind the frame, if it goes with the letters: a black view would stand out from a dark grey page.
function groundAround(mode) {
  for (let around = window.frameElement; around; around = around.parentElement) {
    const { backgroundColor } = window.parent.getComputedStyle(around);
    const [red, green, blue, alpha = 1] = backgroundColor.match(/[\d.]+/g).map(Number);
    if (alpha > 0) return alpha === 1 && red + green + blue < 384 === (mode === "dark") ? backgroundColor : "";
  }
  return "";
}

// It is looked at now and then: a MutationObserver of what is around the frame does not hear of another style sheet, of
// a media query, nor of the end of a transition from one colour to the other (all tried).
export function keepTheme() {
  if (!root.classList.contains("auto")) return;
  function follow() {
    const mode = isDark() ? "dark" : "light";
    root.style.setProperty("--ground", groundAround(mode));
    if (root.classList.contains(mode)) return;
    root.classList.remove("auto", "light", "dark");
    root.classList.add(mode);
    document.dispatchEvent(new Event("themechange"));
  }
  follow();
  setInterval(follow, 500);
}

// Give the frame, if there is one, this page's height. Once it is drawn, what stands beside the frame is not needed.
export function fitFrame(drawn = true) {
  const frame = window.frameElement,
    height = Math.ceil(document.body.getBoundingClientRect().bottom);
  if (!frame || height <= 0) return;
  frame.style.height = `${height}px`;
  if (drawn) frame.nextElementSibling.style.display = "none";
  if (drawn) bringIntoView(frame);
}

// JupyterLab has already scrolled to the next cell when a drawing appears, and may hide its first rows: scroll back,
// unless the drawing is far from what is on the screen, as after "Run All". A slow notebook goes on moving for seconds,
// so the drawing is held there until the reader does something.
let isNew = true;
function bringIntoView(frame) {
  const notebook = isNew && frame.closest(".jp-WindowedPanel-outer");
  isNew = false;
  if (!notebook) return;
  const { top, bottom, height } = notebook.getBoundingClientRect(),
    { top: first, bottom: last } = frame.getBoundingClientRect();
  if (last <= top - height || first >= bottom + height) return;
  const hold = setInterval(() => frame.scrollIntoView({ block: "nearest" }), 150),
    release = () => clearInterval(hold);
  setTimeout(release, 15000);
  for (const heard of [window, frame.ownerDocument])
    for (const act of ["wheel", "pointerdown", "keydown"]) heard.addEventListener(act, release, { capture: true });
}

// After a click in a picture the keyboard is in its frame, and the notebook hears no key: Shift+Enter runs the
// notebook's next cell, and Escape returns to it.
addEventListener("keydown", (event) => event.key === "Enter" && passOn(event), true);
addEventListener("keydown", passOn);

function passOn(event) {
  const { key, code, shiftKey } = event,
    runs = key === "Enter" && shiftKey,
    frame = window.frameElement;
  if (!frame || event.defaultPrevented || !(runs || key === "Escape")) return;
  event.preventDefault();
  event.stopPropagation();
  const cell = frame.closest(".jp-Notebook")?.querySelector(".jp-Cell.jp-mod-active"); // of JupyterLab
  (cell ?? window.parent).focus({ preventScroll: true });
  const copy = { key, code, keyCode: 13, shiftKey, bubbles: true, cancelable: true };
  if (runs) (cell ?? frame).dispatchEvent(new window.parent.KeyboardEvent("keydown", copy));
}

root.classList.toggle("framed", window.parent !== window);
root.classList.toggle("still", Boolean(window.still)); // for a photograph: nothing to press, nothing to scroll
