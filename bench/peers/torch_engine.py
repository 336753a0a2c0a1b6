"""
The peer of `npm run bench -- engine`: PyTorch and Hugging Face transformers on CPU, eager, fp32.

Answers one JSON object a line on standard output to each JSON line on standard input (see bench/worker.ts):
  {"op": "info"}                                        versions
  {"op": "prepare", "model": {...}, "threads": n}       a Llama of this shape with random weights
  {"op": "train", "batch", "length", "steps"}           forward, cross-entropy, backward, AdamW on random tokens;
                                                        "mode" is "eager" (default), "compile" (torch.compile) or "bf16" (autocast)
  {"op": "prefill", "batch", "length"}                  one forward pass that fills the cache, logits of the last token
  {"op": "product", "threads"}                          operations per second of a product of two square matrices in fp32
  {"op": "generate", "batch", "prompt", "tokens"}       greedy `generate` with its default cache
  {"op": "decode", "batch", "prompt", "tokens"}         the same without the prompts and the first token
  {"op": "peak"}                                        largest resident memory of this process so far, bytes
"""

import json
import resource
import sys
import time

MODEL, OPTIMIZER, SHAPE, COMPILED = None, None, None, None


def info(_):
    import torch
    import transformers

    return {"name": f"PyTorch {torch.__version__}, transformers {transformers.__version__}, eager fp32"}


def prepare(request):
    global MODEL, OPTIMIZER, SHAPE
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    from transformers.utils import logging

    logging.set_verbosity_error()
    torch.set_num_threads(request["threads"])
    torch.manual_seed(0)
    SHAPE = request["model"]
    config = LlamaConfig(
        vocab_size=SHAPE["vocabularySize"],
        hidden_size=SHAPE["width"],
        intermediate_size=SHAPE["feedForward"],
        num_hidden_layers=SHAPE["layers"],
        num_attention_heads=SHAPE["heads"],
        num_key_value_heads=SHAPE["keyValueHeads"],
        max_position_embeddings=SHAPE["contextLength"],
        rms_norm_eps=SHAPE["rmsEpsilon"],
        rope_parameters={"rope_type": "default", "rope_theta": SHAPE["ropeBase"]},
        tie_word_embeddings=SHAPE["tieEmbeddings"],
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    MODEL = LlamaForCausalLM(config).float()
    OPTIMIZER = None
    return {"parameters": sum(p.numel() for p in MODEL.parameters())}


def train(request):
    global OPTIMIZER, COMPILED
    import contextlib

    import torch

    if OPTIMIZER is None:
        OPTIMIZER = torch.optim.AdamW(MODEL.parameters(), lr=1e-4, weight_decay=0.01)
    MODEL.train()
    mode = request.get("mode", "eager")
    if mode == "compile":
        COMPILED = torch.compile(MODEL) if COMPILED is None else COMPILED
    forward = COMPILED if mode == "compile" else MODEL
    precision = torch.autocast("cpu", torch.bfloat16) if mode == "bf16" else contextlib.nullcontext()
    size = (request["batch"], request["length"] + 1)
    ids = torch.randint(0, SHAPE["vocabularySize"], size)
    start = time.perf_counter()
    for _ in range(request["steps"]):
        with precision:
            logits = forward(input_ids=ids[:, :-1], use_cache=False).logits
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(MODEL.parameters(), 1.0)
        OPTIMIZER.step()
        OPTIMIZER.zero_grad()
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "tokens": request["steps"] * request["batch"] * request["length"]}


def prefill(request):
    import torch

    MODEL.eval()
    ids = torch.randint(0, SHAPE["vocabularySize"], (request["batch"], request["length"]))
    start = time.perf_counter()
    with torch.inference_mode():
        MODEL(input_ids=ids, use_cache=True, logits_to_keep=1).logits.log_softmax(-1)
    return {"seconds": time.perf_counter() - start, "tokens": request["batch"] * request["length"]}


def product(request):
    import torch

    torch.set_num_threads(request["threads"])
    size, fastest = 2048, 0.0
    a, b = torch.randn(size, size), torch.randn(size, size)
    for _ in range(8):
        start = time.perf_counter()
        a @ b
        fastest = max(fastest, 2 * size**3 / (time.perf_counter() - start))
    return {"rate": fastest}


def generate(request):
    import torch

    MODEL.eval()
    ids = torch.randint(0, SHAPE["vocabularySize"], (request["batch"], request["prompt"]))
    start = time.perf_counter()
    with torch.inference_mode():
        output = MODEL.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=False,
            min_new_tokens=request["tokens"],
            max_new_tokens=request["tokens"],
        )
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "tokens": request["batch"] * (output.shape[1] - request["prompt"])}


def decode(request):
    """What every token after the first takes: two generations, of all tokens and of one."""
    whole, first = generate(request), generate({**request, "tokens": 1})
    return {"seconds": whole["seconds"] - first["seconds"], "tokens": whole["tokens"] - first["tokens"]}


def peak(_):
    return {"bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}


OPERATIONS = {"info": info, "prepare": prepare, "train": train, "prefill": prefill, "product": product, "generate": generate, "decode": decode, "peak": peak}

for line in sys.stdin:
    message = json.loads(line)
    try:
        answer = {"ok": True, **OPERATIONS[message["op"]](message)}
    except Exception as error:  # the bench decides what a failure means
        answer = {"ok": False, "error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
