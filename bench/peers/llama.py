"""
The peer of `npm run bench -- quantisation`: llama.cpp through llama-cpp-python, the GGUF file as it is.

Answers one JSON object a line on standard output to each JSON line on standard input (see bench/worker.ts):
  {"op": "info"}                                        version
  {"op": "prepare", "model": path, "threads": n}        opens the file; "note" where a fast path had to be left out
  {"op": "decode", "ids": [...], "tokens": n}           greedy tokens after a prompt of ids, one sequence
"""

import json
import subprocess
import sys
import time

MODEL = None


def info(_):
    import llama_cpp

    return {"name": f"llama-cpp-python {llama_cpp.__version__}"}


def prepare(request):
    global MODEL
    trial = "import sys; sys.path.pop(0); from llama_cpp import Llama; next(Llama(sys.argv[1], verbose=False).generate([1, 2, 3]))"
    runs = subprocess.run([sys.executable, "-c", trial, request["model"]], capture_output=True).returncode == 0
    if not runs:
        without_extra_buffers()
    from llama_cpp import Llama

    threads = request["threads"]
    MODEL = Llama(request["model"], n_ctx=1024, n_threads=threads, n_threads_batch=threads, verbose=False)
    return {} if runs else {"note": "without extra buffers (AMX, repacking), which crash on this machine"}


def without_extra_buffers():
    """A processor that names AMX but does not permit it kills llama.cpp at the first product."""
    from llama_cpp import llama_cpp as library

    standard = library.llama_model_default_params

    def plain():
        parameters = standard()
        parameters.use_extra_bufts = False
        return parameters

    library.llama_model_default_params = plain
    sys.modules["llama_cpp"].llama_model_default_params = plain


def decode(request):
    MODEL.reset()
    start, busy = time.perf_counter(), time.process_time()
    count = 0
    for _ in MODEL.generate(request["ids"], temp=0.0, repeat_penalty=1.0):
        count += 1
        if count == request["tokens"]:
            break
    seconds, processor = time.perf_counter() - start, time.process_time() - busy
    return {"seconds": seconds, "processorSeconds": processor, "tokens": count}


OPERATIONS = {"info": info, "prepare": prepare, "decode": decode}

for line in sys.stdin:
    message = json.loads(line)
    try:
        answer = {"ok": True, **OPERATIONS[message["op"]](message)}
    except Exception as error:  # the bench decides what a failure means
        answer = {"ok": False, "error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
