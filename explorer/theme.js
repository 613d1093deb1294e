// Light or dark, as the reader has chosen on the site.

try {
  const theme = localStorage.getItem("theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  /* the browser blocks storage */
}
