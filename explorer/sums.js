// Sums that readers can open: the three rows of an embedding, and the updates of attention and of the feed-forward
// network.

// Draw a bar for each number, scaled to the largest
function bars(host, lines) {
  const largest = Math.max(...lines.map(([, value]) => value));
  host.replaceChildren(
    ...lines.map(([name, value]) => {
      const fill = element("span", { className: "fill" });
      fill.style.width = `${(100 * value) / largest}%`;
      return element(
        "li",
        {},
        element("span", { className: "name", title: name }, name),
        element("span", { className: "track" }, fill),
        element("span", { className: "number" }, written(value, 1)),
      );
    }),
  );
}

function makeSums() {
  const names = () => {
    const { token } = followed;
    return [
      `word ${quoted(token)}`,
      `place ${token}`,
      shown.types[token] ? "second sentence" : "first sentence",
      "their sum",
    ];
  };
  const three = new Rows(
    by("three"),
    "Three rows and their sum",
    (row, column, value) => `${names()[row]}, number ${column}: ${written(value, 3)}`,
  );

  return {
    follow() {
      const { token, layer } = followed,
        { own: active, others } = activeUnits(token, layer);
      const [stream, attention, between, feed, after] = lengthsOf(token, layer);
      three.draw(names(), Float32Array.from(rowsOfEmbedding(token).flatMap((row) => [...row])), {});
      bars(by("attention-lengths"), [
        [`${quoted(token)}, as it comes in`, stream],
        ["what attention adds", attention],
        ["sum, after LayerNorm", between],
      ]);
      bars(by("feed-lengths"), [
        [`${quoted(token)}, as it comes in`, between],
        ["what the network adds", feed],
        ["sum, after LayerNorm", after],
      ]);
      by("attention-added").textContent =
        `In layer ${layer}, the vector that attention adds to ${quoted(token)} is ${written(attention / stream)} ` +
        "times as long as the one that came in, which goes on in the sum.";
      by("feed-added").textContent =
        `In layer ${layer}, the network adds a vector ${written(feed / between)} times as long as the one that ` +
        "came in.";
      by("active").textContent =
        `Of the ${SIZES.I.toLocaleString("en")} units in the middle, ${written(100 * active, 0)} % are above zero ` +
        `for ${quoted(token)}, and ${written(100 * others, 0)} % on average for the other tokens. ` +
        "GELU lets these through and holds the others near zero.";
    },
  };
}
