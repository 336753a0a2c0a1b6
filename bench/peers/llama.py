"""
The peer of `npm run bench -- quantisation`: llama.cpp through llama-cpp-python, the GGUF file as it is.

Answers one JSON object a line on standard output to each JSON line on standard input (see bench/worker.ts):
  {"op": "info"}                                        version
  {"op": "prepare", "model": path, "threads": n}        opens the file
  {"op": "decode", "ids": [...], "tokens": n}           greedy tokens after a prompt of ids, one sequence
"""

import json
import sys
import time

MODEL = None


def info(_):
    import llama_cpp

    return {"name": f"llama-cpp-python {llama_cpp.__version__}"}


def prepare(request):
    global MODEL
    from llama_cpp import Llama

    threads = request["threads"]
    MODEL = Llama(request["model"], n_ctx=1024, n_threads=threads, n_threads_batch=threads, verbose=False)
    return {}


def decode(request):
    MODEL.reset()
    start = time.perf_counter()
    count = 0
    for _ in MODEL.generate(request["ids"], temp=0.0, repeat_penalty=1.0):
        count += 1
        if count == request["tokens"]:
            break
    return {"seconds": time.perf_counter() - start, "tokens": count}


OPERATIONS = {"info": info, "prepare": prepare, "decode": decode}

for line in sys.stdin:
    message = json.loads(line)
    try:
        answer = {"ok": True, **OPERATIONS[message["op"]](message)}
    except Exception as error:  # the bench decides what a failure means
        answer = {"ok": False, "error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
