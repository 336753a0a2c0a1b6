"""
The peer of `npm run bench -- lexical`: bm25s with its numba back end, 179 English stop words and Porter2 stems.

Answers one JSON object a line on standard output to each JSON line on standard input (see bench/worker.ts):
  {"op": "info"}                                 versions
  {"op": "build", "corpus": path}                reads JSONL ("contents" or "title" and "text"), tokenises, indexes
  {"op": "single", "queries": [...], "k": n}     one call of `retrieve` a query, tokenising included
  {"op": "bulk", "queries": [...], "k": n}       one call for all queries, on all cores or on one, whichever is faster
  {"op": "ranking", "queries": [...], "k": n}    positions in the corpus, for the quality
  {"op": "peak"}                                 largest resident memory of this process so far, bytes
"""

import json
import resource
import sys
import time

INDEX, TOKENIZE, THREADS = None, None, None


def info(_):
    import bm25s
    import numba
    import Stemmer  # noqa: F401

    return {"name": f"bm25s {bm25s.__version__}, numba {numba.__version__}"}


def text_of(record):
    if "contents" not in record:
        return record.get("title", "") + "\n" + record["text"]
    title, _, text = record["contents"].partition("\n")
    return title.strip('"') + "\n" + text


def build(request):
    global INDEX, TOKENIZE, THREADS
    import bm25s
    import Stemmer
    from bm25s.stopwords import STOPWORDS_EN_PLUS

    options = dict(
        stopwords=list(STOPWORDS_EN_PLUS), stemmer=Stemmer.Stemmer("english"), show_progress=False
    )
    THREADS = None
    INDEX = None
    start = time.perf_counter()
    with open(request["corpus"], encoding="utf8") as lines:
        texts = [text_of(json.loads(line)) for line in lines]
    read = time.perf_counter()
    tokens = bm25s.tokenize(texts, **options)
    INDEX = bm25s.BM25(method="lucene", k1=1.2, b=0.75, backend="numba")
    INDEX.index(tokens, show_progress=False)
    end = time.perf_counter()
    TOKENIZE = lambda queries: bm25s.tokenize(queries, return_ids=False, **options)
    return {"seconds": end - start, "readSeconds": read - start, "passages": len(texts)}


def retrieve(queries, k, threads):
    return INDEX.retrieve(TOKENIZE(queries), k=k, show_progress=False, n_threads=threads)


def single(request):
    start = time.perf_counter()
    for query in request["queries"]:
        retrieve([query], request["k"], 0)
    return {"seconds": time.perf_counter() - start}


def bulk(request):
    global THREADS
    if THREADS is None:
        timed = [(timed_bulk(request, threads), threads) for threads in (0, 0, 2, 2)]
        THREADS = min(timed)[1]
    return {"seconds": timed_bulk(request, THREADS), "threads": THREADS}


def timed_bulk(request, threads):
    start = time.perf_counter()
    retrieve(request["queries"], request["k"], threads)
    return time.perf_counter() - start


def ranking(request):
    positions, scores = retrieve(request["queries"], request["k"], 0)
    return {"positions": positions.tolist(), "scores": scores.tolist()}


def peak(_):
    return {"bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}


OPERATIONS = {
    "info": info,
    "build": build,
    "single": single,
    "bulk": bulk,
    "ranking": ranking,
    "peak": peak,
}

for line in sys.stdin:
    message = json.loads(line)
    try:
        answer = {"ok": True, **OPERATIONS[message["op"]](message)}
    except Exception as error:  # the bench decides what a failure means
        answer = {"ok": False, "error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
