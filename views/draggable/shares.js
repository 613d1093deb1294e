// Lines between the tokens of two texts, as thick as each pair's share of their cosine: for why_near.
const MOST_LINES = 80,
  STRONG = 3; // that are drawn, and that stand out while nothing is chosen

// All pairs { i, j, share } of a table of shares, the strongest first.
function ranked(rows) {
  const pairs = rows.flatMap((row, i) => Array.from(row, (share, j) => ({ i, j, share })));
  return pairs.sort((a, b) => Math.abs(b.share) - Math.abs(a.share));
}

// How thick a pair's line is, beside that of the strongest.
const thickness = (pair, strongest) => Math.max(0.4, (9 * Math.abs(pair.share)) / Math.abs(strongest.share));

// Whether a pair is meant by what is chosen: a token on either side, both, or neither, which means all pairs.
const isMeant = (pair, { i, j }) => (i ?? pair.i) === pair.i && (j ?? pair.j) === pair.j;
