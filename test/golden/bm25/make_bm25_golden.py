"""Writes scores.json beside this file: scores of both BM25 variants as bm25s computes them.

Made-up passages of made-up words, so that analysis plays no part: the words are lower-case ASCII, neither stop words
nor changed by the tokeniser, and no stemmer is used. `scores` are those of every passage for each query. bm25s adds
delta x idf for absent terms too, to all passages alike (its "nonoccurrence" part); here it is taken off again, so that
delta counts in passages that hold the term, as Lv and Zhai 2011 define it.
"""

import json
import math
import random
from pathlib import Path

import bm25s

random.seed(7)
WORDS = [a + b + c for a in "bdgk" for b in "aeo" for c in ("lum", "rin", "tox")]
WEIGHTS = [1 / (i + 1) for i in range(len(WORDS))]
PASSAGES = [" ".join(random.choices(WORDS, WEIGHTS, k=random.randint(1, 40))) for _ in range(60)]
QUERIES = [" ".join(random.sample(WORDS, k)) for k in (1, 1, 2, 3, 5, 8)] + [WORDS[0], WORDS[-1]]
SETTINGS = [(variant, k1, b) for variant in ("lucene", "bm25+") for k1, b in ((1.2, 0.75), (0.9, 0.4), (2.0, 1.0))]


def scores_of(variant, k1, b):
    index = bm25s.BM25(method=variant, k1=k1, b=b, delta=1, dtype="float64")
    index.index([p.split() for p in PASSAGES], show_progress=False)
    rows = []
    for query in QUERIES:
        terms = query.split()
        row = index.get_scores(terms).tolist()
        if variant == "bm25+":
            for term in terms:
                holders = sum(term in p.split() for p in PASSAGES)
                if holders == 0:
                    continue
                idf = math.log((len(PASSAGES) + 1) / holders)
                row = [s if term in p.split() else s - idf for s, p in zip(row, PASSAGES)]
        rows.append([round(score, 9) for score in row])
    return rows


golden = {
    "reference": f"bm25s {bm25s.__version__}",
    "passages": PASSAGES,
    "queries": QUERIES,
    "settings": [
        {"variant": variant, "k1": k1, "b": b, "scores": scores_of(variant, k1, b)} for variant, k1, b in SETTINGS
    ],
}
Path(__file__).with_name("scores.json").write_text(json.dumps(golden) + "\n")
