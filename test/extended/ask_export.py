"""
What the real libraries make of exported models. Reads one request as JSON from stdin, prints one answer as JSON.

{"op": "adapters", "base", "out"}     makes random adapters for a model folder with PEFT and saves them
{"op": "compare", "a", "b", "texts", "chats"}   two models in fp32, each {"folder", "file"?, "adapters"?}: the largest difference of any
                                      logit, and for each its ids, 24 tokens of greedy continuation, and chats as text
{"op": "gguf", "path"}                what the package `gguf` reads: fields, and name, type, shape, sum and magnitude of each tensor
{"op": "llama", "path", "texts"}      what llama.cpp makes of a GGUF file: ids and 24 tokens of greedy continuation
"""

import json
import sys


def adapters(request):
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.manual_seed(3)
    base = AutoModelForCausalLM.from_pretrained(request["base"], dtype=torch.float32)
    model = get_peft_model(base, LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj", "down_proj"], task_type="CAUSAL_LM"))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.copy_(0.3 * torch.randn_like(parameter))
    model.save_pretrained(request["out"])
    return {}


def load(place):
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    extra = {"gguf_file": place["file"]} if "file" in place else {}
    model, loading = AutoModelForCausalLM.from_pretrained(place["folder"], dtype=torch.float32, output_loading_info=True, **extra)
    tokenizer = AutoTokenizer.from_pretrained(place.get("adapters", place["folder"]), **extra)
    unmatched = sorted(map(str, [*loading["missing_keys"], *loading["unexpected_keys"]]))
    if "adapters" in place:
        model = PeftModel.from_pretrained(model, place["adapters"])
    return model.eval(), tokenizer, unmatched


def compare(request):
    import torch

    (a, tokenizer, unmatched), (b, other, unmatched_b) = load(request["a"]), load(request["b"])
    answer = {"difference": 0.0, "unmatched": [*unmatched, *unmatched_b], "a": [], "b": [], "chats": []}
    for text in request["texts"]:
        ids = tokenizer(text, return_tensors="pt", add_special_tokens=False).input_ids
        with torch.no_grad():
            difference = (a(input_ids=ids).logits - b(input_ids=ids).logits).abs().max().item()
        answer["difference"] = max(answer["difference"], difference)
        for key, model, one in (("a", a, tokenizer), ("b", b, other)):
            own = one(text, return_tensors="pt", add_special_tokens=False).input_ids
            greedy = model.generate(
                input_ids=own, attention_mask=torch.ones_like(own), max_new_tokens=24, do_sample=False, eos_token_id=None, pad_token_id=0
            )
            answer[key].append({"tokens": own[0].tolist(), "text": one.decode(own[0]), "greedy": greedy[0, own.shape[1] :].tolist()})
    for chat in request.get("chats", []):
        answer["chats"].append([one.apply_chat_template(chat, tokenize=False, add_generation_prompt=True) for one in (tokenizer, other)])
    answer["ends"] = [[one.eos_token_id, model.generation_config.eos_token_id] for one, model in ((tokenizer, a), (other, b))]
    return answer


def read_gguf(request):
    import numpy as np
    from gguf import GGUFReader
    from gguf.quants import dequantize

    reader = GGUFReader(request["path"])
    fields = {}
    for name, field in reader.fields.items():
        value = field.contents()
        fields[name] = len(value) if isinstance(value, list) else value
    tensors = []
    for tensor in reader.tensors:
        values = dequantize(tensor.data, tensor.tensor_type).astype(np.float64)
        shape = [int(size) for size in reversed(tensor.shape)]
        tensors.append([tensor.name, tensor.tensor_type.name, shape, values.sum(), np.abs(values).sum()])
    return {"fields": fields, "tensors": tensors}


def llama(request):
    import llama_cpp
    from llama_cpp import Llama

    # Repacked weights use AMX where the processor names it; a virtual machine that does not grant it ends with SIGILL.
    defaults = llama_cpp.llama_cpp.llama_model_default_params

    def plain():
        parameters = defaults()
        parameters.use_extra_bufts = False
        return parameters

    llama_cpp.llama_cpp.llama_model_default_params = plain
    model = Llama(request["path"], n_ctx=512, verbose=False, n_threads=2)
    answers = []
    for text in request["texts"]:
        tokens = model.tokenize(text.encode(), add_bos=False, special=True)
        greedy, generated = [], model.generate(tokens, temp=0.0, top_k=1, repeat_penalty=1.0)
        for token in generated:
            greedy.append(token)
            if len(greedy) == 24:
                break
        answers.append({"tokens": tokens, "text": model.detokenize(tokens, special=True).decode(), "greedy": greedy})
    return {"version": llama_cpp.__version__, "answers": answers, "end": model.token_eos(), "template": model.metadata.get("tokenizer.chat_template")}


OPERATIONS = {"adapters": adapters, "compare": compare, "gguf": read_gguf, "llama": llama}
request = json.load(sys.stdin)
answer = OPERATIONS[request["op"]](request)
sys.stdout.write("\n" + json.dumps(answer))
