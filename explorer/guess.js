// Guess first: a question covers its answer until the reader chooses one or clicks “Show me”.

const times = (value) => `${written(value)} times`;

const LENGTHS = [
  ["a tenth", 0.1],
  ["a third", 1 / 3],
  ["as long", 1],
  ["three times as long", 3],
];
const SHARES = [
  ["1 in 20", 0.05],
  ["1 in 5", 0.2],
  ["1 in 2", 0.5],
  ["4 in 5", 0.8],
];
const COSINES = [
  ["0.9", 0.9],
  ["0.6", 0.6],
  ["0.3", 0.3],
  ["0", 0],
];

// Each guess: what it covers, its question, its choices, the right one, and what the answer means
const GUESSES = {
  looks: {
    covers: ["#scores", "#weights", "#looks"],
    ask: () => `In ${place()}: which token does ${quoted(followed.token)} look at most?`,
    choices: () => shown.tokens.map((_, i) => placed(i)),
    right: () => {
      const row = rowOfWeights();
      return row.indexOf(Math.max(...row));
    },
    means: (right) =>
      `${quoted(right)} gets the attention weight ${written(rowOfWeights()[right])}. ` +
      "A head has no list of words to look for: query and key decide, in each sentence again.",
  },
  added: {
    covers: ["#attention-sum", "#attended"],
    ask: () =>
      `In layer ${followed.layer}: how long is the vector that attention adds, compared with that of ` +
      `${quoted(followed.token)} itself?`,
    choices: () => LENGTHS.map(([name]) => name),
    right: () => nearest(LENGTHS, addedBy(followed.token, followed.layer), byRatio),
    means: () =>
      `It is ${times(addedBy(followed.token, followed.layer))} as long. The vector that came in goes on, and ` +
      "attention adds to it: that is why a token does not forget its word.",
  },
  active: {
    covers: ["#feed-sum", "#output"],
    ask: () =>
      `In layer ${followed.layer}: how many of the ${SIZES.I.toLocaleString("en")} units are above zero for ` +
      `${quoted(followed.token)}?`,
    choices: () => SHARES.map(([name]) => name),
    right: () => nearest(SHARES, activeUnits(followed.token, followed.layer).own, byDifference),
    means: () =>
      `${written(100 * activeUnits(followed.token, followed.layer).own, 0)} % are. ` +
      "Each unit reacts to its own pattern, and only some of them react to any one token.",
  },
  turned: {
    covers: ["#moved", "#final"],
    ask: () =>
      `What is the cosine between the embedding of ${quoted(followed.token)} and its last vector? ` +
      "1 would mean that its direction has not changed.",
    choices: () => COSINES.map(([name]) => name),
    right: () => nearest(COSINES, turned(followed.token)[L], byDifference),
    means: () => `It is ${written(turned(followed.token)[L])}. Layer by layer the vector has taken up its sentence.`,
  },
};

const rowOfWeights = () => [...rowOf(ofHead("attentions"), followed.token, shown.tokens.length)];

function makeGuess(name, { covers, ask, choices, right, means }) {
  const host = by(`guess-${name}`),
    small = (text, onclick) => element("button", { type: "button", className: "small", onclick }, text);
  const part = { asked: false, open, reveal, close, follow, answer: null };

  function cover(covered) {
    part.asked = covered;
    for (const selector of covers) {
      const hidden = document.querySelector(selector);
      hidden.inert = covered;
      hidden.classList.toggle("covered", covered);
    }
  }

  function close() {
    cover(false);
    host.className = "guess";
    host.replaceChildren(
      small("Guess first", () => {
        open();
        host.querySelector("button").focus();
      }),
    );
  }

  function open() {
    cover(true);
    host.className = "guess open";
    const buttons = choices().map((text, i) => small(text, () => reveal(i)));
    host.replaceChildren(
      element("p", {}, element("b", {}, ask())),
      element(
        "p",
        { className: "ready" },
        ...buttons,
        small("Show me", () => reveal()),
      ),
    );
  }

  // Show the answer, to a choice or to “Show me”
  function reveal(choice) {
    const answer = right(),
      name = choices()[answer];
    part.answer = answer;
    cover(false);
    const verdict =
      choice === undefined
        ? `${name[0].toUpperCase()}${name.slice(1)}.`
        : choice === answer
          ? `Yes: ${name}.`
          : `Not ${choices()[choice]}, but ${name}.`;
    const result = element("p", { tabIndex: -1 }, element("b", {}, verdict), ` ${means(answer)}`);
    host.replaceChildren(result, small("Close", close));
    by("spoken").textContent = result.textContent;
    (parts.tour.at === null ? result : by("tour-next")).focus({ preventScroll: true });
  }

  // For another token, layer or head, ask an open question again; close an answer
  function follow() {
    if (part.asked) open();
    else close();
  }

  close();
  return part;
}

const makeGuesses = () =>
  Object.fromEntries(Object.entries(GUESSES).map(([name, guess]) => [`guess_${name}`, makeGuess(name, guess)]));
