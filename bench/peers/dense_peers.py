"""
The peers of `npm run bench -- dense`: faiss, usearch and onnxruntime in Python.

Answers one JSON object a line on standard output to each JSON line on standard input (see bench/worker.ts):
  {"op": "info"}                                                     which libraries there are, by version
  {"op": "load", "vectors", "queries", "dimensions", "threads"}      files of 32-bit floats, row by row
  {"op": "exact", "mode": "single" | "bulk", "k", "count"}           faiss IndexFlatIP
  {"op": "answers", "k", "count"}                                    ids of exact search
  {"op": "graph", "library": "faiss" | "usearch", "k", "recall", "connectivity", "expansionAdd"}
      builds HNSW and takes the smallest search expansion that reaches the recall
  {"op": "search", "library", "k", "count"}                          bulk search of that graph
  {"op": "encoder", "folder", "texts", "pooling", "maxTokens", "threads"}   tries batch sizes, keeps the fastest
  {"op": "encode", "batch": "fastest" | 32}                          encodes the texts
"""

import json
import sys
import time

STATE = {}
EXPANSIONS = [10, 12, 14, 16, 20, 24, 28, 32, 36, 40, 44, 48, 56, 64, 72, 80, 96, 112, 128, 160, 192, 256, 384, 512]


def info(_):
    versions = {}
    for name in ["faiss", "usearch", "onnxruntime", "tokenizers"]:
        try:
            versions[name] = __import__(name).__version__
        except ImportError:
            pass
    return {"versions": versions}


def load(request):
    import numpy as np

    for name in ["vectors", "queries"]:
        STATE[name] = np.fromfile(request[name], dtype=np.float32).reshape(-1, request["dimensions"])
    STATE["threads"] = request["threads"]
    STATE["graphs"] = {}
    STATE["flat"] = None
    return {}


def flat():
    import faiss

    faiss.omp_set_num_threads(STATE["threads"])
    if STATE["flat"] is None:
        STATE["flat"] = faiss.IndexFlatIP(STATE["vectors"].shape[1])
        STATE["flat"].add(STATE["vectors"])
    return STATE["flat"]


def exact(request):
    index, k = flat(), request["k"]
    queries = STATE["queries"][: request["count"]]
    start = time.perf_counter()
    if request["mode"] == "single":
        for i in range(len(queries)):
            index.search(queries[i : i + 1], k)
    else:
        index.search(queries, k)
    return {"seconds": time.perf_counter() - start, "tokens": len(queries)}


def answers(request):
    _, ids = flat().search(STATE["queries"][: request["count"]], request["k"])
    return {"ids": ids.tolist()}


def graph(request):
    k = request["k"]
    _, wanted = flat().search(STATE["queries"], k)
    start = time.perf_counter()
    search, expand = BUILDERS[request["library"]](request)
    seconds = time.perf_counter() - start
    for expansion in EXPANSIONS:
        expand(expansion)
        found = search(STATE["queries"], k)
        hits = sum(len(set(a) & set(b)) for a, b in zip(found.tolist(), wanted.tolist()))
        recall = hits / wanted.size
        if recall >= request["recall"]:
            break
    STATE["graphs"][request["library"]] = search
    return {"recall": recall, "expansion": expansion, "buildSeconds": seconds}


def faiss_graph(request):
    import faiss

    index = faiss.IndexHNSWFlat(STATE["vectors"].shape[1], request["connectivity"], faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = request["expansionAdd"]
    index.add(STATE["vectors"])

    def expand(expansion):
        index.hnsw.efSearch = expansion

    return (lambda queries, k: index.search(queries, k)[1]), expand


def usearch_graph(request):
    import numpy as np
    from usearch.index import Index

    vectors = STATE["vectors"]
    index = Index(
        ndim=vectors.shape[1],
        metric="ip",
        dtype="bf16",
        connectivity=request["connectivity"],
        expansion_add=request["expansionAdd"],
    )
    index.add(np.arange(len(vectors)), vectors, threads=STATE["threads"])

    def expand(expansion):
        index.expansion_search = expansion

    return (lambda queries, k: index.search(queries, k, threads=STATE["threads"]).keys), expand


BUILDERS = {"faiss": faiss_graph, "usearch": usearch_graph}


def search(request):
    queries = STATE["queries"][: request["count"]]
    start = time.perf_counter()
    STATE["graphs"][request["library"]](queries, request["k"])
    return {"seconds": time.perf_counter() - start, "tokens": len(queries)}


def encoder(request):
    import onnxruntime
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(request["folder"] + "/tokenizer.json")
    tokenizer.no_padding()
    tokenizer.enable_truncation(request["maxTokens"])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = request["threads"]
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        request["folder"] + "/model.onnx", options, providers=["CPUExecutionProvider"]
    )
    STATE["encoder"] = (tokenizer, session, request["pooling"], request["texts"])
    speeds = {}
    for batch in [1, 8, 32]:
        some = request["texts"][:: max(1, len(request["texts"]) // 64)]
        start = time.perf_counter()
        encode_texts(some, batch)
        speeds[batch] = len(some) / (time.perf_counter() - start)
    STATE["fastest"] = max(speeds, key=speeds.get)
    return {"fastest": STATE["fastest"]}


def encode_texts(texts, batch):
    import numpy as np

    tokenizer, session, pooling, _ = STATE["encoder"]
    encoded = tokenizer.encode_batch(texts)
    order = sorted(range(len(texts)), key=lambda i: -len(encoded[i].ids))
    names = {each.name for each in session.get_inputs()}
    vectors = None
    for at in range(0, len(order), batch):
        chosen = order[at : at + batch]
        length = max(len(encoded[i].ids) for i in chosen)
        ids = np.zeros((len(chosen), length), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, i in enumerate(chosen):
            ids[row, : len(encoded[i].ids)] = encoded[i].ids
            mask[row, : len(encoded[i].ids)] = 1
        feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        states = session.run(None, {name: value for name, value in feeds.items() if name in names})[0]
        if pooling == "cls":
            pooled = states[:, 0]
        else:
            pooled = (states * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
        pooled /= np.linalg.norm(pooled, axis=1, keepdims=True)
        if vectors is None:
            vectors = np.zeros((len(texts), pooled.shape[1]), dtype=np.float32)
        vectors[chosen] = pooled
    return vectors


def encode(request):
    texts = STATE["encoder"][3]
    batch = STATE["fastest"] if request["batch"] == "fastest" else request["batch"]
    start = time.perf_counter()
    vectors = encode_texts(texts, batch)
    return {"seconds": time.perf_counter() - start, "tokens": len(texts), "first": vectors[0].tolist()}


OPERATIONS = {
    "info": info,
    "load": load,
    "exact": exact,
    "answers": answers,
    "graph": graph,
    "search": search,
    "encoder": encoder,
    "encode": encode,
}

for line in sys.stdin:
    message = json.loads(line)
    try:
        answer = {"ok": True, **OPERATIONS[message["op"]](message)}
    except Exception as error:  # the bench decides what a failure means
        answer = {"ok": False, "error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
