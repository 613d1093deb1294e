// A slider for the divisor of the scores: from 1 to 2√D, with the model's own √D in the middle.
const NOTCHES = 20; // steps of the slider on either side of √D

const divisorAt = (notch) => Math.sqrt(D) + (notch / NOTCHES) * (notch < 0 ? Math.sqrt(D) - 1 : Math.sqrt(D));
const entropyOf = (shares) => -shares.reduce((sum, share) => sum + (share > 0 ? share * Math.log2(share) : 0), 0);

// Softmax of a row of products q · k after a division. The largest is subtracted first, so that the powers of e stay finite.
function divided(products, divisor) {
  const largest = Math.max(...products);
  return softmaxTerms(products.map((value) => (value - largest) / divisor)).shares;
}

function makeScale() {
  const slider = by("divisor"), part = { shares: [], draw, follow: draw };
  Object.assign(slider, { min: -NOTCHES, max: NOTCHES, step: 1, value: 0 });
  slider.oninput = () => {
    draw();
    changed();
  };
  by("own").onclick = () => {
    slider.value = 0;
    slider.oninput();
  };

  // q · k of the followed token with every token, in one head
  function productsOf(layer, head) {
    const row = ofHead("queries", layer, head).subarray(followed.token * D, (followed.token + 1) * D);
    return [...product(row, ofHead("keys", layer, head), D)];
  }

  by("telling").onclick = () => { // follow the head whose largest weight changes most between the two ends of the slider
    const change = Array.from({ length: L * A }, (_, i) => {
      const products = productsOf(Math.floor(i / A), i % A), [sharp, flat] = [-NOTCHES, NOTCHES].map((notch) => Math.max(...divided(products, divisorAt(notch))));
      return sharp - flat;
    });
    followHead(change.indexOf(Math.max(...change)));
  };

  function draw() {
    const { token } = followed, { tokens } = shown, count = tokens.length, notch = +slider.value, divisor = divisorAt(notch);
    const products = productsOf(followed.layer, followed.head);
    const own = divided(products, Math.sqrt(D)), shares = divided(products, divisor);
    part.shares = shares;
    const name = notch === 0 ? `√${D} = ${written(divisor)}, the model's own` : written(divisor);
    slider.setAttribute("aria-valuetext", `divided by ${name}`);
    by("divided").textContent = name;
    const lines = shares.map((share, i) => {
      const fill = element("span", { className: "fill" }), mark = element("span", { className: "own" });
      fill.style.width = `${100 * share}%`;
      mark.style.left = `${100 * own[i]}%`;
      return element("li", {}, element("span", { className: "name", title: tokens[i] }, placed(i)), element("span", { className: "track" }, fill, mark), element("span", { className: "number" }, written(share, 3)));
    });
    by("bars").replaceChildren(...lines);
    const most = shares.indexOf(Math.max(...shares)), state = shares[most] > 0.99 ? " Softmax is saturated: one token takes nearly everything." : "";
    const really = notch === 0 ? "" : `; with √${D} it is ${written(own[most])}`;
    by("spread").textContent = `In ${place()}, divided by ${name}, ${quoted(token)} gives ${quoted(most)} the largest attention weight, ${written(shares[most])}${really}. The entropy is ${written(entropyOf(shares))} bits, between 0 (one token takes all) and ${written(Math.log2(count))} (all ${count} get the same).${state}`;
  }

  return part;
}
