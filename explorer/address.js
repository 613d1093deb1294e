// The page's address holds the text and choices, so that a link restores them. Opening such a link does not load the
// model: until the reader does, the link's text waits in the boxes.
function makeAddress() {
  const numbers = ["l", "h", "t"],
    texts = ["s", "s2"];
  let waiting = null,
    read = "",
    pause; // the part of a link that is not shown yet

  // Everything that the page shows and that differs from its initial state
  function state() {
    const other = shown.texts.join("\n") !== SAVED.texts.join("\n");
    const all = {
      s: other && shown.texts[0],
      s2: shown.texts[1],
      l: followed.layer !== DATA.shown.layer && followed.layer,
      h: followed.head !== DATA.shown.head && followed.head,
      t: (wish || other) && followed.token,
    };
    return Object.fromEntries(Object.entries({ ...all, ...waiting }).filter(([, value]) => value || value === 0));
  }

  function write() {
    clearTimeout(pause);
    const hash = new URLSearchParams(state()).toString();
    if (location.hash.slice(1) === hash) return;
    read = hash;
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  }

  // The valid values of an address: integers, and texts cut to the limit
  function parse(hash) {
    const fields = new URLSearchParams(hash),
      values = {};
    for (const name of numbers) if (/^-?\d{1,3}$/.test(fields.get(name) ?? "")) values[name] = +fields.get(name);
    for (const name of texts)
      if (fields.get(name)?.trim()) values[name] = fields.get(name).slice(0, DATA.limits.characters);
    return values;
  }

  const within = (value, count) => Math.max(0, Math.min(count - 1, value));

  // Follow a link: when the page opens, and when its address changes
  function open() {
    const hash = location.hash.slice(1);
    if (hash === read || !hash.includes("=")) return;
    read = hash;
    const { l, h, ...rest } = parse(hash),
      asked = [rest.s ?? SAVED.texts[0], rest.s ? (rest.s2 ?? "") : ""];
    Object.assign(followed, { layer: within(l ?? DATA.shown.layer, L), head: within(h ?? DATA.shown.head, A) });
    follow({});
    if (by("fields").disabled) return; // a page opened from a folder has only the saved text
    [by("first").value, by("second").value] = asked;
    waiting = rest;
    text();
    if (!waiting) return;
    if (live) send();
    else
      say(`This link brings its own texts. Press Enter in a box above, or the button, to load the model and see them.`);
  }

  // Called for each text shown: if it is the link's text, restore the link's token
  function text() {
    if (!waiting) return;
    const { s = SAVED.texts[0], s2 = "", t } = waiting;
    const isIts = shown.texts[0] === s && shown.texts[1] === s2;
    if (isIts && t !== undefined) chooseToken(within(t, shown.tokens.length));
    if (isIts || live) waiting = null; // else the reader has typed another text
  }

  by("copy-link").onclick = async () => {
    write();
    try {
      await navigator.clipboard.writeText(location.href);
      say("The link is copied. It leads to what you see now: text, layer, head and token.");
    } catch {
      say("This browser does not let pages copy: copy the link from the address bar.");
    }
  };
  window.addEventListener("hashchange", open);
  return {
    open,
    text,
    changed() {
      clearTimeout(pause);
      pause = setTimeout(write, 250); // browsers limit how often a page may rewrite its address
    },
  };
}
