// Make elements that scroll horizontally focusable, so that the keyboard can scroll them at any window width.
function reach() {
  for (const one of document.querySelectorAll("article :is(pre, div, mjx-container)")) {
    const scrolls = one.scrollWidth > one.clientWidth && ["auto", "scroll"].includes(getComputedStyle(one).overflowX);
    if (scrolls) one.tabIndex = 0;
    else one.removeAttribute("tabindex");
  }
}

new ResizeObserver(reach).observe(document.body); // also called for the initial size

// Search results show the matching lines only if the page is served: from a folder it cannot read other pages.
DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = location.protocol !== "file:";
