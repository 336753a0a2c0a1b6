"""
What Hugging Face transformers makes of a model folder. Reads {"folder", "copy", "texts"} as JSON from stdin; prints
for each text its token ids, the log-probability of each id but the first in fp32, the text decoded again, and
three tokens of greedy continuation; with the token ids that end and fill a text. Saves model and tokenizer as
transformers itself would into "copy".
"""

import json
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

request = json.load(sys.stdin)
tokenizer = AutoTokenizer.from_pretrained(request["folder"])
model, loading = AutoModelForCausalLM.from_pretrained(
    request["folder"], dtype=torch.float32, output_loading_info=True
)
model.eval()
model.save_pretrained(request["copy"])
tokenizer.save_pretrained(request["copy"])

answers = []
for text in request["texts"]:
    ids = tokenizer(text, return_tensors="pt").input_ids
    with torch.no_grad():
        logprobs = model(ids).logits[0, :-1].log_softmax(-1)
        greedy = model.generate(ids, max_new_tokens=3, do_sample=False)
    answers.append(
        {
            "tokens": ids[0].tolist(),
            "logprobs": logprobs.gather(-1, ids[0, 1:, None])[:, 0].tolist(),
            "text": tokenizer.decode(ids[0]),
            "greedy": greedy[0, ids.shape[1] :].tolist(),
        }
    )
generation = model.generation_config
print(
    json.dumps(
        {
            "kind": type(model).__name__,
            "unmatched": sorted(map(str, [*loading["missing_keys"], *loading["unexpected_keys"]])),
            "endOfTextIds": [tokenizer.eos_token_id, generation.eos_token_id],
            "paddingIds": [tokenizer.pad_token_id, generation.pad_token_id],
            "answers": answers,
        }
    )
)
