// A slider for the divisor of the scores: from 1 to 2√D, with the model's own √D in the middle.
function makeScale() {
  const slider = by("divisor"),
    part = { draw, follow: draw };
  Object.assign(slider, { min: -NOTCHES, max: NOTCHES, step: 1, value: 0 });
  slider.oninput = () => {
    draw();
    changed();
  };
  by("own").onclick = () => {
    slider.value = 0;
    slider.oninput();
  };

  by("telling").onclick = () => followHead(mostScaled(followed.token));

  function draw() {
    const { token } = followed,
      { tokens } = shown,
      count = tokens.length,
      notch = +slider.value,
      divisor = divisorAt(notch);
    const products = productsOf(followed);
    const own = divided(products, Math.sqrt(D)),
      shares = divided(products, divisor);
    const name = notch === 0 ? `√${D} = ${written(divisor)}, the model's own` : written(divisor);
    slider.setAttribute("aria-valuetext", `divided by ${name}`);
    by("divided").textContent = name;
    const lines = shares.map((share, i) => {
      const fill = element("span", { className: "fill" }),
        mark = element("span", { className: "own" });
      fill.style.width = `${100 * share}%`;
      mark.style.left = `${100 * own[i]}%`;
      return element(
        "li",
        {},
        element("span", { className: "name", title: tokens[i] }, placed(i)),
        element("span", { className: "track" }, fill, mark),
        element("span", { className: "number" }, written(share, 3)),
      );
    });
    by("bars").replaceChildren(...lines);
    const most = shares.indexOf(Math.max(...shares)),
      state = shares[most] > 0.99 ? " Softmax is saturated: one token takes nearly everything." : "";
    const really = notch === 0 ? "" : `; with √${D} it is ${written(own[most])}`;
    by("spread").textContent =
      `In ${place()}, divided by ${name}, ${quoted(token)} gives ${quoted(most)} the largest attention weight, ` +
      `${written(shares[most])}${really}. The entropy is ${written(entropyOf(shares))} bits, between 0 (one token ` +
      `takes all) and ${written(Math.log2(count))} (all ${count} get the same).${state}`;
  }

  return part;
}
