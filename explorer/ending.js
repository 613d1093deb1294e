// Uses of the vectors: a vector for the sentence, its cosine with two other sentences, and how far a token has turned.
const SVG = "http://www.w3.org/2000/svg";

function drawing(name, attributes, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function makeEnding() {
  const boxes = [by("other"), by("ending-control")];
  const saved = DATA.ending.map(({ vector, shares, ...rest }) => ({ ...rest, ...unpackNumbers({ vector, shares }) }));
  let compared = saved;
  const near = makeNear();
  const part = {
    cosines: [],
    near,
    text: compare,
    follow: drawCurve,
    texts: () => compared.map(({ text }) => text),
    send: sendThem,
  };

  function compare() {
    const own = meanVector(shown),
      name = shown.texts.filter((text) => text.trim()).join(" / ");
    part.cosines = compared.map(({ vector }) => cosine(own, vector));
    by("nearness").replaceChildren(
      ...compared.map(({ text }, i) => {
        const fill = element("span", { className: "fill" }),
          value = part.cosines[i];
        fill.style.width = `${100 * Math.max(0, value)}%`;
        return element(
          "li",
          {},
          element("span", { className: "name", title: text }, text),
          element("span", { className: "track" }, fill),
          element("span", { className: "number" }, written(value)),
        );
      }),
    );
    const [other, control] = part.cosines,
      apart = Math.abs(other - control);
    const nearer =
      apart < 0.005
        ? "Both are equally near."
        : `The ${other > control ? "second sentence" : "control"} is nearer, by ${written(apart)}.`;
    by("nearer").textContent =
      `“${name}” and “${compared[0].text}” have the cosine ${written(other)}; ` +
      `with the control, “${compared[1].text}”, it is ${written(control)}. ` +
      `${nearer}`;
    const at = +by("near-with").value,
      { tokens, last, vector, shares } = compared[at];
    if (last)
      near.draw([shown.tokens, tokens], sharesOf(ofLayer("hidden_states", L), last, own, vector), part.cosines[at]);
    else if (shown === SAVED) near.draw([shown.tokens, tokens], shares, part.cosines[at]);
    else sendThem(compared.map(({ text }) => text)); // only the saved sentence can be compared without the model
  }

  function drawCurve() {
    const { tokens } = shown;
    const others = tokens
      .map((_, row) => row)
      .filter((row) => row !== followed.token)
      .map(turned);
    const mean = Array.from(
      { length: L + 1 },
      (_, depth) => others.reduce((sum, curve) => sum + curve[depth], 0) / others.length,
    );
    const own = turned(followed.token);
    const low = Math.min(0, ...own, ...mean),
      x = (depth) => 26 + (depth * 308) / L,
      y = (value) => 18 + ((1 - value) * 130) / (1 - low);
    const line = (values, name) =>
      drawing("polyline", { class: name, points: values.map((value, depth) => `${x(depth)},${y(value)}`).join(" ") });
    const write = (text, at, height, name = "") => drawing("text", { x: at, y: height, class: name }, text);
    const marks = own.flatMap((value, depth) => {
      const above = depth === 0 || value >= mean[depth];
      return [
        drawing("circle", { cx: x(depth), cy: y(value), r: 3.5 }),
        write(written(value), x(depth), y(value) + (above ? -8 : 18), "value"),
        write(String(depth), x(depth), 172),
      ];
    });
    const picture = drawing(
      "svg",
      {
        viewBox: "0 0 360 192",
        role: "img",
        "aria-label":
          `Cosine between the embedding of ${quoted(followed.token)} and its vector after each layer: ` +
          `${own.map((value) => written(value)).join(", ")}. Mean of the other tokens: ` +
          `${mean.map((value) => written(value)).join(", ")}.`,
      },
      drawing("line", { x1: 16, x2: 344, y1: y(0), y2: y(0), class: "axis" }),
      line(mean, "others"),
      line(own, "own-line"),
      ...marks,
      write("layers passed", 180, 189),
    );
    by("curve").replaceChildren(picture);
    by("turned").textContent =
      `0 is the embedding itself, ${L} what the last layer gives. Solid: ${quoted(followed.token)}, which ends at ` +
      `${written(own[L])}. Dashed: the mean of the other tokens, ${written(mean[L])}.`;
  }

  // Send two texts through the encoder: those in the boxes, or the two that the text is compared with now
  async function sendThem(texts = boxes.map((box) => box.value)) {
    const tell = (text, wrong) => say(text, wrong, by("ending-status")),
      typed = () => boxes.map((box) => box.value).join("\n"),
      before = typed();
    try {
      const done = [];
      for (const text of texts) {
        const known = shown === SAVED && saved.find((one) => one.text === text);
        done.push(known || reading(text, await through([text, ""], { tell })));
      }
      if (typed() !== before) return; // the reader has gone on typing
      compared = done;
      tell("");
      compare();
      changed();
    } catch (error) {
      tell(reason(error), true);
    }
  }

  const reading = (text, outputs) => ({
    text,
    tokens: outputs.tokens,
    last: ofLayer("hidden_states", L, outputs),
    vector: meanVector(outputs),
  });

  boxes.forEach((box, i) => {
    box.value = saved[i].text;
  });
  by("ready").onclick = () => {
    // this works without the model
    boxes.forEach((box, i) => {
      box.value = saved[i].text;
    });
    compared = saved;
    [by("first").value, by("second").value] = SAVED.texts;
    showText(SAVED);
  };
  by("near-with").onchange = compare;
  by("ending-form").onsubmit = (event) => {
    event.preventDefault();
    sendThem();
  };
  return part;
}
