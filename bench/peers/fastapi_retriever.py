"""The smallest fair server of the Search-R1 kind: FastAPI and uvicorn, a synchronous handler, bm25s with its numba
back end. Usage: fastapi_retriever.py CORPUS.jsonl PORT [batched]. Prints one JSON line with the URL when it is ready.

As Search-R1 writes its BM25 server: a query at a time, and the answer returned as an object, which FastAPI walks through
before it is written. `batched` is as fast as this can be made: one call of bm25s for all queries of a request, and a
plain JSONResponse. Both: uvicorn without an access log, numba compiled before the first request, one thread, as ours.
"""

import json
import sys
import threading

import bm25s
import uvicorn
from fastapi import FastAPI
from fastapi.responses import JSONResponse
from pydantic import BaseModel

try:
    import Stemmer

    stemmer = Stemmer.Stemmer("english")
except ImportError:
    stemmer = None

corpus_path, port = sys.argv[1], int(sys.argv[2])
is_batched = sys.argv[3:] == ["batched"]
with open(corpus_path, encoding="utf-8") as lines:
    corpus = [json.loads(line) for line in lines]

index = bm25s.BM25(k1=1.2, b=0.75, backend="numba")
texts = [document.get("contents") or f"{document['title']}\n{document['text']}" for document in corpus]
index.index(bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False), show_progress=False)
# numba's default threading layer must not be entered from two threads at once
lock = threading.Lock()


def search(queries, k):
    tokens = bm25s.tokenize(queries, stopwords="en", stemmer=stemmer, return_ids=False, show_progress=False)
    with lock:
        return index.retrieve(tokens, k=k, show_progress=False, n_threads=1)


class QueryRequest(BaseModel):
    queries: list[str]
    topk: int | None = None
    return_scores: bool = False


app = FastAPI()


def rows(queries, k):
    if is_batched:
        positions, scores = search(queries, k)
        return zip(positions.tolist(), scores.tolist())
    found = [search([query], k) for query in queries]
    return [(positions[0].tolist(), scores[0].tolist()) for positions, scores in found]


@app.post("/retrieve")
def retrieve(request: QueryRequest):
    result = []
    for positions, scores in rows(request.queries, request.topk or 3):
        documents = [corpus[position] for position in positions]
        if request.return_scores:
            documents = [{"document": d, "score": s} for d, s in zip(documents, scores)]
        result.append(documents)
    answer = {"result": result}
    return JSONResponse(answer) if is_batched else answer


class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        address = self.servers[0].sockets[0].getsockname()
        kind = "one call of bm25s a request" if is_batched else "a query at a time, as Search-R1"
        ready = {"url": f"http://127.0.0.1:{address[1]}", "name": f"FastAPI + bm25s {bm25s.__version__}, {kind}"}
        print(json.dumps(ready), flush=True)


search(["compile this"], 3)
Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error", access_log=False, backlog=1024)).run()
