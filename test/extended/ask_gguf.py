"""
What Hugging Face transformers makes of a GGUF file of SmolLM2. Reads {"folder", "file", "texts", "nasty", "chats"} as JSON
from stdin; prints for each text its ids, log-probabilities in fp32 and 32 tokens of greedy continuation; the logits'
five largest after each text; the ids of the nasty texts; and the chats with a generation prompt.
"""

import json
import sys

import torch
from tokenizers import pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer

request = json.load(sys.stdin)
place = {"pretrained_model_name_or_path": request["folder"], "gguf_file": request["file"]}
tokenizer = AutoTokenizer.from_pretrained(**place)
# transformers forgets how the file says words are cut (tokenizer.ggml.pre = smollm): digits stand alone, as in the
# tokenizer.json that SmolLM2 is published with. It matters only for spaces before a digit.
imported = [tokenizer(text).input_ids for text in request["nasty"]]
tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
    [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
)
model = AutoModelForCausalLM.from_pretrained(**place, dtype=torch.float32).eval()

answers = []
for text in request["texts"]:
    ids = tokenizer(text, return_tensors="pt").input_ids
    with torch.no_grad():
        logits = model(ids).logits[0]
        greedy = model.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=32, do_sample=False, eos_token_id=None, pad_token_id=2
        )
    logprobs = logits[:-1].log_softmax(-1).gather(-1, ids[0, 1:, None])[:, 0]
    last = logits[-1].log_softmax(-1)
    answers.append(
        {
            "tokens": ids[0].tolist(),
            "logprobs": logprobs.tolist(),
            "last": last.tolist(),
            "greedy": greedy[0, ids.shape[1] :].tolist(),
        }
    )
print(
    json.dumps(
        {
            "parameters": sum(p.numel() for p in model.parameters()),
            "answers": answers,
            "nasty": [tokenizer(text).input_ids for text in request["nasty"]],
            "imported": imported,
            "chats": [
                tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True) for chat in request["chats"]
            ],
        }
    )
)
