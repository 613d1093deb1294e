// The same sums as `whole_words` in words.py: of the rows of weights of one head, from pieces to whole words.

// Sum the weights over the pieces of each key, and average them over those of each query. `queries` and `keys` hold the
// index of each token's word.
export function wholeWords(rows, queries, keys = queries) {
  const count = (words) => Math.max(-1, ...words) + 1,
    pieces = Array(count(queries)).fill(0);
  const all = pieces.map(() => Array(count(keys)).fill(0));
  queries.forEach((word) => {
    pieces[word] += 1;
  });
  rows.forEach((row, i) =>
    row.forEach((weight, j) => {
      all[queries[i]][keys[j]] += weight / pieces[queries[i]];
    }),
  );
  return all;
}
