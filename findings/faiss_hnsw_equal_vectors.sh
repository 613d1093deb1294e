#!/usr/bin/env bash
# faiss: an HNSW index loses most of 400 equal vectors, however long it may search.
#
# Guess (75 %): if efSearch is larger than the index, a search finds all 400 vectors that equal the query.
# What happens: IndexHNSWFlat finds about a tenth of them and fills the rest of the answer with the id -1, although the
#   index holds 1,400 vectors. No error is raised. Among different vectors it finds as many as requested. With 100
#   copies, other vectors can be in the answer instead of -1; with 20 copies nothing is lost.
# Seen with: faiss-cpu 1.15.1. In 1.8.0 to 1.15.0 all copies are found.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet faiss-cpu==1.15.1 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'PY'
import sys

import faiss
import numpy as np

random = np.random.default_rng(0)
different = random.normal(size=(1000, 32)).astype(np.float32)
copies = np.repeat(random.normal(size=(1, 32)).astype(np.float32), 400, axis=0)


def search(index, vectors, query):
    """Return the ids of the 400 nearest vectors."""
    index.add(vectors)
    return index.search(query[None], 400)[1][0]


def hnsw():
    """Return an empty index with 8 links per vector, which may visit every vector in a search."""
    index = faiss.IndexHNSWFlat(32, 8)
    index.hnsw.efSearch = 2000
    return index


everything = np.concatenate([different, copies])
exact = search(faiss.IndexFlatL2(32), everything, copies[0])
approximate = search(hnsw(), everything, copies[0])
control = search(hnsw(), different, different[0])
found_exact, found = int((exact >= 1000).sum()), int((approximate >= 1000).sum())
print(f"faiss {faiss.__version__}, numpy {np.__version__}")
print("Of 400 equal vectors, an HNSW index with 8 links finds only a part. The other answers are -1, without an error.")
print(f"equal vectors found by an exact search:        {found_exact} of 400")
print(f"equal vectors found with HNSW, efSearch 2000:  {found} of 400; answers of -1: {int((approximate == -1).sum())}")
print(f"neighbours found with HNSW among 1,000 different vectors: {int((control >= 0).sum())} of 400")
expected = found_exact == 400 and found < 200 and -1 in approximate and -1 not in control
print("as expected" if expected else "DIFFERS from what is expected")
sys.exit(not expected)
PY
