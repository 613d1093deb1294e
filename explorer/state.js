// What the files of explorer.html share, and explorer.js fills in. Nothing here needs the page.

import { quoted, tokenName } from "../views/numbers.js";

export const sizes = {}; // V, H, L, A, I, and D, the size of a head
export const followed = {}; // the token, layer and head
// The text that the page came with, the one that is shown, and the rows for first and second sentence; the token that the
// reader chose, { word, place }, and whether they chose a head; and how often a text was sent.
export const page = { saved: null, shown: null, types: null, wish: null, choseHead: false, asked: 0 };

export const place = () => `layer ${followed.layer}, head ${followed.head}`;

// The name of a token of the text that is shown
export const nameOf = (row) => tokenName(page.shown.tokens, row);
export const quotedName = (row) => quoted(nameOf(row));
