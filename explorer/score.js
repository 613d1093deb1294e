// One attention weight, step by step: query, key, products, sum, ÷ √D, e to that power, share of the row.
const SHOWN_TERMS = 5; // terms of the row with a line each; the rest share one line

// Format a number of any size: 12.34, 1.23 × 10⁷
function sized(value) {
  if (value === 0 || (value >= 0.001 && value < 1e5))
    return value.toLocaleString("en", { maximumSignificantDigits: 4 });
  const [digits, power] = value.toExponential(2).split("e"),
    raised = (sign) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[sign] ?? (sign === "-" ? "⁻" : "");
  return `${digits} × 10${[...power].map(raised).join("")}`;
}

function makeOneScore() {
  const names = () => [`q of ${quoted(followed.token)}`, `k of ${quoted(followed.key)}`, "q × k"];
  const label = (first) => (row, column, value) => `${names()[first + row]}, number ${column}: ${written(value, 3)}`;
  const vectors = new Rows(by("one-vectors"), "Query and key", label(0));
  const products = new Rows(by("one-products"), "Their products, number by number", label(2));
  const cell = (text, name = "td") => element(name, name === "th" ? { scope: "row" } : {}, text);

  // The softmax row of the followed token: its largest terms first, always including the chosen key
  function drawRow({ powers, total, shares }, scores) {
    const order = shares.map((_, i) => i).sort((a, b) => shares[b] - shares[a]),
      brief = order.length > SHOWN_TERMS + 1;
    const shownTerms = brief ? order.filter((i, rank) => rank < SHOWN_TERMS || i === followed.key) : order;
    const rest = order.filter((i) => !shownTerms.includes(i)),
      sum = (list) => rest.reduce((all, i) => all + list[i], 0);
    const lines = shownTerms.map((i) => {
      const line = element(
        "tr",
        {},
        cell(quoted(i), "th"),
        cell(written(scores[i])),
        cell(sized(powers[i])),
        cell(written(shares[i], 3)),
      );
      line.className = i === followed.key ? "chosen" : "";
      return line;
    });
    if (rest.length)
      lines.push(
        element(
          "tr",
          {},
          cell(`the other ${rest.length}`, "th"),
          cell("–"),
          cell(sized(sum(powers))),
          cell(written(sum(shares), 3)),
        ),
      );
    lines.push(element("tr", { className: "total" }, cell("sum", "th"), cell(""), cell(sized(total)), cell("1")));
    by("one-row").replaceChildren(...lines);
  }

  return {
    follow() {
      const { token, key } = followed,
        {
          query,
          asked,
          products: multiplied,
          dot,
          scores,
          terms,
          score,
          power,
          total,
          share,
        } = stepsToWeight(followed);
      vectors.draw(names().slice(0, 2), Float32Array.from([...query, ...asked]), {});
      products.draw(names().slice(2), multiplied, {});
      const root = written(Math.sqrt(D), 3),
        largest = multiplied.reduce((most, value, i) => (Math.abs(value) > Math.abs(multiplied[most]) ? i : most), 0);
      const steps = {
        "one-dot": `q · k = ${written(dot)}`,
        "one-score-is": `${written(dot)} ÷ ${root} = ${written(score)}`,
        "one-power": `e^${written(score)} = ${sized(power)}`,
        "one-total": sized(total),
        "one-share": `${sized(power)} ÷ ${sized(total)} = ${written(share, 3)}`,
        "one-largest": `Its largest term is number ${largest}: ${written(multiplied[largest])}.`,
        "one-words":
          `Now in ${place()}: ${quoted(token)} asks, and ${quoted(key)} answers. ` +
          `Query and key give the score ${written(score)}, and e to that power is ${written(100 * share, 1)} % of ` +
          `the sum of the row. So ${quoted(token)} gives ${quoted(key)} the attention weight ${written(share, 3)}.`,
      };
      for (const [id, text] of Object.entries(steps)) by(id).textContent = text;
      drawRow(terms, scores);
    },
  };
}
