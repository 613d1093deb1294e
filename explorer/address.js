// The page's address holds the texts and choices, so that a link restores them. Opening such a link does not load the
// model: until the reader does, the link's text waits in the boxes.
function makeAddress() {
  const numbers = ["l", "h", "t", "k", "d"],
    texts = ["s", "s2", "keep", "keep2", "control", "b", "c"];
  let waiting = null,
    read = "",
    pause; // the part of a link that is not shown yet

  // Everything that the page shows and that differs from its initial state
  function state() {
    const { kept, control } = parts.pair.texts(),
      [b, c] = parts.ending.texts(),
      [firstB, firstC] = DATA.ending.map(({ text }) => text);
    const other = shown.texts.join("\n") !== SAVED.texts.join("\n");
    const all = {
      s: other && shown.texts[0],
      s2: shown.texts[1],
      l: followed.layer !== DATA.shown.layer && followed.layer,
      h: followed.head !== DATA.shown.head && followed.head,
      t: (wish || other) && followed.token,
      k: keyWish && followed.key,
      d: +by("divisor").value || "",
      keep: kept?.[0],
      keep2: kept?.[1],
      control,
      b: b !== firstB && b,
      c: c !== firstC && c,
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

  // Choose the link's token and key, once its text is shown
  function choose({ t, k }) {
    const count = shown.tokens.length,
      token = t === undefined ? followed.token : within(t, count);
    if (t !== undefined || k !== undefined) chooseToken(token, k === undefined ? undefined : within(k, count));
  }

  // Follow a link: when the page opens, and when its address changes
  function open() {
    const hash = location.hash.slice(1);
    if (hash === read || !hash.includes("=")) return;
    read = hash;
    const { l, h, d, ...rest } = parse(hash),
      asked = [rest.s ?? SAVED.texts[0], rest.s ? (rest.s2 ?? "") : ""];
    Object.assign(followed, { layer: within(l ?? DATA.shown.layer, L), head: within(h ?? DATA.shown.head, A) });
    by("divisor").value = d ?? 0;
    if (d) by("scale").open = true;
    follow({});
    if (by("fields").disabled) return; // a page opened from a folder has only the saved text
    [by("first").value, by("second").value] = asked;
    if (rest.b) by("other").value = rest.b;
    if (rest.c) by("ending-control").value = rest.c;
    waiting = rest;
    text();
    if (!waiting) return;
    if (live) send();
    else
      say(`This link brings its own texts. Press Enter in a box above, or the button, to load the model and see them.`);
  }

  // Called for each text shown: if it is the link's text, restore the link's choices
  async function text() {
    if (!waiting) return;
    const { s = SAVED.texts[0], s2 = "", keep, keep2 = "", control, b, c, ...places } = waiting;
    if (shown.texts[0] !== s || shown.texts[1] !== s2) {
      if (live) waiting = null; // the reader has typed another text
      return;
    }
    choose(places);
    const more = keep || b || c;
    waiting = more ? { ...waiting, t: undefined, k: undefined } : null;
    if (!more || !live) return;
    waiting = null;
    if (keep) await parts.pair.send({ keep: [keep, keep2], control });
    if (b || c) await parts.ending.send();
  }

  by("copy-link").onclick = async () => {
    write();
    try {
      await navigator.clipboard.writeText(location.href);
      say("The link is copied. It leads to what you see now: text, layer, head, token and comparisons.");
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
