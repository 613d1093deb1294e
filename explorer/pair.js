// Two texts that differ in one or a few words: what changes with them, next to a control that changes another word.

function makePair() {
  let kept = null,
    control = null,
    compared = null,
    controlled = null,
    turn = 0;
  const map = new Matrix(
    by("pair-map"),
    "Attention weights, now minus kept",
    (row, column, value) => {
      const { before, after } = compared.heads[followed.layer * A + followed.head],
        [from, to] = [compared.names[row], compared.names[column]];
      return Number.isNaN(value)
        ? `${from} is in one text only`
        : `${place()}: ${from} looks at ${to}: ${written(before[row][column], 3)} kept, ` +
            `${written(after[row][column], 3)} now, ${written(value, 3)}`;
    },
    (row) => compared.slots[row].b.length && chooseToken(compared.slots[row].b[0]),
  );
  const tell = (text, wrong) => say(text, wrong, by("pair-status"));
  const part = {
    measured: {},
    text: drawText,
    follow: drawFollowed,
    send: sendThem,
    texts: () => ({ kept: kept?.texts, control: control?.texts[0] }),
  };
  const slotOf = (one, side, i) => one.slots.findIndex((slot) => slot[side].includes(i));

  // Compare and draw again, after a new text or a new kept sentence
  function drawText() {
    compared = kept && compareTexts(kept, shown);
    const drawnOne = compared?.heads !== undefined;
    by("pair-shown").hidden = !drawnOne;
    by("control-form").hidden = !kept;
    by("kept").textContent = kept ? `Kept: “${kept.texts.filter(Boolean).join(" / ")}”.` : "";
    by("pair-how").textContent = !kept
      ? "Nothing is kept yet."
      : compared.equal
        ? "The text shown is the kept one. Now change a word of it in the box at the top of this page."
        : (compared.apart ?? "");
    by("control-how").textContent =
      controlled?.apart ??
      (controlled?.equal ? "The control is the kept sentence itself: change another word in it." : "");
    if (!drawnOne) return;
    const limit = largestOf(compared.heads.flatMap(({ difference }) => difference.flat()));
    fillHeads(by("pair-heads"), (canvas, i, palette) =>
      thumbnail(canvas, compared.heads[i].difference.flat(), compared.slots.length, palette, limit),
    );
    by("pair-scale").replaceChildren(...scale(limit, true, colours()));
    drawBoth();
  }

  // Both texts in one picture, a sentence view: the kept one above its words, the text shown below them
  let picture = null;
  function drawBoth() {
    const { slots } = compared,
      texts = [kept, shown],
      sides = ["a", "b"];
    const name = (side, slot) =>
      slot[sides[side]]
        .map((i) => texts[side].tokens[i])
        .join(" ")
        .replaceAll(" ##", "");
    const pieces = {
      ids: sides.map((side) => slots.flatMap((slot, i) => slot[side].map(() => i))),
      names: sides.map((_, side) => slots.map((slot) => name(side, slot))),
    };
    const isPiece = (i) => i > 0 && pieces.names.some((names) => names[i].startsWith("##"));
    const starts = slots.flatMap((_, i) => (isPiece(i) ? [] : [i])),
      wordOf = (i) => starts.filter((start) => start <= i).length - 1;
    const joined = (names) =>
      starts.map((start, i) =>
        names
          .slice(start, starts[i + 1])
          .join(" ")
          .replaceAll(" ##", ""),
      );
    const words = { ids: pieces.ids.map((ids) => ids.map(wordOf)), names: pieces.names.map(joined) };
    const labels = pieces.names.map((names) => names.filter((_, i) => !slots[i].same && names[i]).join(", ") || "–");
    picture?.remove();
    picture = document.querySelector("#opening iframe").cloneNode();
    picture.figure = {
      labels,
      drawn: { pieces, words },
      weights: texts.map(({ attentions }) => packed(attentions)),
      sizes: texts.map(({ tokens }) => tokens.length),
      heads: A,
      layers: Array.from({ length: L }, (_, layer) => layer),
      first: { ...chosen(), mode: "pieces", both: true },
      models: false,
    };
    Object.assign(picture, { className: "", title: "The kept text above, the one shown below", onload: followBoth });
    by("pair-picture").append(picture);
  }
  const chosen = () => ({ token: slotOf(compared, "b", followed.token), layer: followed.layer, head: followed.head });
  const followBoth = () => picture.contentWindow?.change?.(chosen());

  function drawFollowed() {
    if (!compared?.heads) return;
    const head = followed.layer * A + followed.head,
      slot = slotOf(compared, "b", followed.token),
      { a } = compared.slots[slot];
    mark(by("pair-heads"), head);
    followBoth();
    const values = compared.heads[head].difference.flat();
    map.draw(compared.names, values, { chosen: slot, signed: true, limit: largestOf(values) });
    by("pair-numbers").hidden = !a.length;
    if (!a.length) {
      by("pair-words").textContent =
        `${quoted(followed.token)} is in the new text only: follow another token to compare it.`;
      return;
    }
    const now = measure(compared, slot, head),
      other = controlled?.heads && slotOf(controlled, "a", a[0]);
    const held = other !== undefined && controlled.slots[other].b.length ? measure(controlled, other, head) : null;
    part.measured = { now, held };
    const { before, after, difference } = compared.heads[head],
      most = difference[slot].map(Math.abs).reduce((best, value, i, all) => (value > all[best] ? i : best), 0);
    const also = held ? ` The control, ${controlled.change}, moves ${written(held.here)} there.` : "";
    by("pair-words").textContent =
      `From the kept text to this one: ${compared.change}. In ${place()}, ${written(now.here)} of the attention of ` +
      `${quoted(followed.token)} moves; most changes what it gives “${compared.names[most]}”, from ` +
      `${written(before[slot][most])} to ${written(after[slot][most])}.${also}`;
    fillNumbers(now, held);
    const order = compared.heads
      .map((_, i) => i)
      .sort((i, j) => compared.heads[j].moved[slot] - compared.heads[i].moved[slot])
      .slice(0, 5);
    by("pair-most").replaceChildren(
      ...order.map((i, rank) => {
        const button = element("button", { type: "button" }, headName(i));
        button.onclick = () => {
          followHead(i);
          by("pair-most").querySelectorAll("button")[rank].focus(); // the buttons have been replaced
        };
        return line(button, compared.heads[i].moved[slot], held && controlled.heads[i].moved[other]);
      }),
    );
  }

  const line = (name, now, held) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, name),
      element("td", {}, written(now)),
      element("td", {}, Number.isFinite(held) ? written(held) : "–"),
    );

  function fillNumbers(now, held) {
    const token = quoted(followed.token),
      names = {
        here: `attention of ${token} that moves, ${place()}`,
        heads: `the same, mean of all ${L * A} heads`,
        all: "the same, mean of all tokens too",
        cosine: `cosine of the last vectors of ${token}`,
      };
    by("pair-lines").replaceChildren(...Object.entries(names).map(([key, name]) => line(name, now[key], held?.[key])));
    for (const column of document.querySelectorAll(".pair-now")) column.textContent = compared.change;
    for (const column of document.querySelectorAll(".pair-held"))
      column.textContent = held ? `control: ${controlled.change}` : "no control yet";
  }

  function keep() {
    turn++; // what is on its way no longer counts
    kept = shown;
    control = controlled = null;
    by("control-text").value = shown.texts[0];
    redraw();
    say("Kept. Change a word in the box: the difference is drawn below, under “What changes with one word?”.");
  }

  function redraw() {
    drawText();
    drawFollowed();
    changed();
  }

  // Send a text to keep and a control, both optional, through the encoder; false if it failed or another was sent
  async function sendThem({ keep: first, control: second }) {
    const mine = ++turn,
      stale = () => mine !== turn;
    try {
      const base = first ? await through(first, { tell, stale }) : kept;
      const other = base && second && (await through([second, base.texts[1]], { tell, stale }));
      if (stale()) return false;
      if (first) by("control-text").value = second ?? first[0];
      [kept, control, controlled] = [base, other || null, other ? compareTexts(base, other) : null];
      tell("");
      redraw();
      return true;
    } catch (error) {
      if (!stale()) tell(reason(error), true);
      return false;
    }
  }

  by("keep").onclick = keep;
  by("control-form").onsubmit = (event) => {
    event.preventDefault();
    sendThem({ control: by("control-text").value });
  };
  by("pair-examples").append(
    ...DATA.pairs.map(({ kept: first, next, control: second, follow: chosen, change }) => {
      const button = element("button", { type: "button" }, change);
      button.onclick = async () => {
        if (!(await sendThem({ keep: [first, ""], control: second }))) return;
        wish = { word: chosen.word, place: 0 };
        keyWish = chosen.key ? { word: chosen.key, place: 0 } : null;
        Object.assign(followed, { layer: Math.min(chosen.layer, L - 1), head: Math.min(chosen.head, A - 1) });
        [by("first").value, by("second").value] = [next, ""];
        await send();
      };
      return button;
    }),
  );
  return part;
}
