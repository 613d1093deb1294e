// Loads a view when its place in the page comes near, and draws it in the frame that waits there.

const folder = new URL("views/", document.currentScript.src);

// What the file of a view calls.
window.drawView = (name, page) => {
  document.querySelector(`iframe[data-view="${name}"]`).srcdoc = page;
};

const near = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    near.unobserve(target);
    const script = document.createElement("script");
    script.src = new URL(`${target.dataset.view}.js`, folder);
    document.head.append(script);
  }
}, { rootMargin: "600px" });

for (const frame of document.querySelectorAll("iframe[data-view]")) near.observe(frame);
