"""
What PEFT makes of a checkpoint of adapters as it lies there. Reads {"folder", "texts"} as JSON from stdin; the model is found
through the folder alone. Prints for each text its token ids and the log-probability of each id but the first in fp32, with
what the adapters were and the keys that did not fit.
"""

import json
import sys

import torch
from peft import AutoPeftModelForCausalLM
from transformers import AutoTokenizer

request = json.load(sys.stdin)
tokenizer = AutoTokenizer.from_pretrained(request["folder"])
model = AutoPeftModelForCausalLM.from_pretrained(request["folder"], dtype=torch.float32).eval()
config = model.peft_config["default"]
answers = []
for text in request["texts"]:
    ids = tokenizer(text, return_tensors="pt").input_ids
    with torch.no_grad():
        logprobs = model(input_ids=ids).logits[0, :-1].log_softmax(-1)
    answers.append(
        {"tokens": ids[0].tolist(), "logprobs": logprobs.gather(-1, ids[0, 1:, None])[:, 0].tolist()}
    )
norms = [parameter.norm().item() for name, parameter in model.named_parameters() if "lora_B" in name]
print(
    json.dumps(
        {
            "rank": config.r,
            "alpha": config.lora_alpha,
            "targets": sorted(config.target_modules),
            "smallestNorm": min(norms),
            "adapters": len(norms),
            "answers": answers,
        }
    )
)
