// What scrolls sideways can be reached and scrolled with the keyboard, at every width of the window.
function reach() {
  for (const one of document.querySelectorAll("article :is(pre, div, mjx-container)")) {
    const scrolls = one.scrollWidth > one.clientWidth && ["auto", "scroll"].includes(getComputedStyle(one).overflowX);
    if (scrolls) one.tabIndex = 0;
    else one.removeAttribute("tabindex");
  }
}

new ResizeObserver(reach).observe(document.body); // which tells the first size, too

// The search shows the lines it found where it may read pages: from a server, not from a folder.
DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = location.protocol !== "file:";
