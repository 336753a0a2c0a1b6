"""Writes golden.json beside this file: random judgements and runs, and what trec_eval (through pytrec_eval-terrier) makes of them.

The runs have ties, scores that are equal only as 32-bit floats, grades from -1 to 3, passages that nobody judged, queries without
results, without judgements and without relevant passages, and ids in which the order of bytes differs from that of UTF-16.
mrr@10 is recip_rank of the first ten of trec_eval's order, as its option -M 10 gives it.
"""
import json
import platform
import random
from importlib.metadata import version
from pathlib import Path
import struct

import pytrec_eval

CUTOFFS = [1, 3, 5, 10, 100]
LISTS = ",".join(map(str, CUTOFFS))
MEASURES = {f"{m}.{LISTS}" for m in ("P", "recall", "success", "ndcg_cut", "map_cut")} | {"map", "recip_rank", "ndcg"}
STEMS = ["d", "D", "é", "日", "\ue000", "\U0001f600", "a-", "Z_"]


def float32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def make_case(rng, queries, passages):
    ids = [f"{rng.choice(STEMS)}{n}" for n in range(passages)]
    qrels, run = {}, {}
    for q in range(queries):
        judged = rng.sample(ids, rng.randint(1, min(12, passages)))
        weights = [1, 6, 4, 2, 1] if rng.random() < 0.9 else [1, 1, 0, 0, 0]
        if rng.random() < 0.95:
            qrels[f"q{q}"] = {d: rng.choices([-1, 0, 1, 2, 3], weights)[0] for d in judged}
        if rng.random() < 0.9:
            found = set(rng.sample(ids, rng.randint(1, passages))) | set(d for d in judged if rng.random() < 0.5)
            kind = rng.randint(0, 3)
            score = {
                0: lambda: float(rng.randint(0, 4)),
                1: lambda: round(rng.uniform(-3, 9), 6),
                2: lambda: 1 + rng.randint(0, 3) * 1e-9,
                3: lambda: rng.randint(0, 2) * 1e-3 + 20.0,
            }[kind]
            run[f"q{q}"] = {d: score() for d in sorted(found)}
    return qrels, run


def first_ten(scores):
    order = sorted(scores, key=lambda d: (float32(scores[d]), d.encode()), reverse=True)[:10]
    return {d: float(-i) for i, d in enumerate(order)}


def evaluate(qrels, run, level):
    found = pytrec_eval.RelevanceEvaluator(qrels, MEASURES, relevance_level=level).evaluate(run)
    cut = pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"}, relevance_level=level).evaluate(
        {q: first_ten(scores) for q, scores in run.items()}
    )
    names = {"P": "precision", "ndcg_cut": "ndcg", "map_cut": "map", "recip_rank": "mrr"}

    def rename(name):
        stem, _, cutoff = name.rpartition("_")
        return f"{names.get(stem, stem)}@{cutoff}" if cutoff.isdigit() else names.get(name, name)

    return {
        q: {**{rename(m): v for m, v in values.items()}, "mrr@10": cut[q]["recip_rank"]} for q, values in found.items()
    }


def main():
    rng = random.Random(20260404)
    cases = []
    for queries, passages in [(12, 6), (20, 25), (15, 150)]:
        qrels, run = make_case(rng, queries, passages)
        for level in (1, 2):
            cases.append({"qrels": qrels, "run": run, "relevantFrom": level, "values": evaluate(qrels, run, level)})
    made_with = {"pytrec-eval-terrier": version("pytrec-eval-terrier"), "python": platform.python_version()}
    path = Path(__file__).with_name("golden.json")
    path.write_text(json.dumps({"madeWith": made_with, "cases": cases}, ensure_ascii=True) + "\n")


main()
