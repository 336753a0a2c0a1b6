"""The smallest fair server of the Search-R1 kind: FastAPI and uvicorn, a synchronous handler, bm25s with its numba
back end. Usage: fastapi_retriever.py CORPUS.jsonl PORT. Prints one JSON line with the URL when it is ready.

Fair means: uvicorn's fast parts (httptools, uvloop) where they are installed, no access log, no validation of the
answer (a plain JSONResponse), one call of bm25s for all queries of a request, compiled before the first request.
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


@app.post("/retrieve")
def retrieve(request: QueryRequest):
    positions, scores = search(request.queries, request.topk or 3)
    result = []
    for row, row_scores in zip(positions.tolist(), scores.tolist()):
        documents = [corpus[position] for position in row]
        if request.return_scores:
            documents = [{"document": d, "score": s} for d, s in zip(documents, row_scores)]
        result.append(documents)
    return JSONResponse({"result": result})


class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        address = self.servers[0].sockets[0].getsockname()
        ready = {"url": f"http://127.0.0.1:{address[1]}", "name": f"FastAPI + bm25s {bm25s.__version__} (numba)"}
        print(json.dumps(ready), flush=True)


search(["compile this"], 3)
Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error", access_log=False, backlog=1024)).run()
