// Load each view when its frame is about to scroll into sight.

const folder = new URL("views/", document.currentScript.src);

// Called by the file of each view.
window.drawView = (name, page) => {
  document.querySelector(`iframe[data-view="${name}"]`).srcdoc = page;
};

const near = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      const script = document.createElement("script");
      script.src = new URL(`${target.dataset.view}.js`, folder);
      document.head.append(script);
    }
  },
  { rootMargin: "600px" },
);

for (const frame of document.querySelectorAll("iframe[data-view]")) near.observe(frame);
