"""
Makes the golden files of the model families with PyTorch and Hugging Face transformers.

    python make_families_golden.py [OUTPUT_FOLDER]      (needs torch, transformers, safetensors; some seconds on CPU)

For a tiny random model of every family it writes a folder as the hub would hold it:
  config.json, weights         the weights as float32, float16 or bfloat16, in one file or in shards
  golden.json                  what PyTorch computes with them in fp32: logits, log-probabilities, the cross-entropy
                               and its gradient, a greedy continuation of 32 tokens
The losses are plain sums over the weighted tokens, as in src/algorithm/loss.ts. Sequences are run one by one.
"""

import json
import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

VOCAB, LENGTHS, GREEDY = 61, (12, 7, 90), 32
SHAPE = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "max_position_embeddings": 128,
    "bos_token_id": None,
    "eos_token_id": 0,
    "pad_token_id": None,
    "attn_implementation": "eager",
}
ROPE = {"rope_type": "default", "rope_theta": 10000.0}
# Wavelengths of the four pairs of an eight-wide head are 6, 63, 628 and 6283 tokens: one is kept, one blended, two scaled.
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2}

# Name: (model, configuration, how its weights are stored, number of files, how config.json is written).
FAMILIES = {
    "llama3": (LlamaForCausalLM, LlamaConfig(**SHAPE, **HEADS, rope_parameters=LLAMA3), "bfloat16", 1, 4),
    "smollm2": (
        LlamaForCausalLM,
        LlamaConfig(
            **SHAPE | {"hidden_size": 24},
            num_attention_heads=3,
            num_key_value_heads=1,
            rms_norm_eps=1e-5,
            rope_parameters=ROPE | {"rope_theta": 100000.0},
            tie_word_embeddings=True,
        ),
        "float32",
        1,
        4,
    ),
    "qwen2": (
        Qwen2ForCausalLM,
        Qwen2Config(**SHAPE, **HEADS, rope_parameters=ROPE | {"rope_theta": 1000000.0}, tie_word_embeddings=True),
        "float16",
        3,
        5,
    ),
    "qwen3": (
        Qwen3ForCausalLM,
        Qwen3Config(**SHAPE, **HEADS, head_dim=12, rope_parameters=ROPE | {"rope_theta": 1000000.0}),
        "bfloat16",
        2,
        5,
    ),
    "mistral": (
        MistralForCausalLM,
        MistralConfig(**SHAPE, **HEADS, head_dim=8, sliding_window=None, rope_parameters=ROPE),
        "float32",
        1,
        5,
    ),
}


def make_model(number, kind, config, dtype):
    torch.manual_seed(20261129 + number)
    model = kind(config).float().eval()
    with torch.no_grad():  # large enough that attention and gates are far from uniform
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.copy_(0.5 * torch.randn_like(parameter))
            elif parameter.dim() == 1:
                parameter.copy_(1 + 0.2 * torch.randn_like(parameter))
            else:
                scale = 0.3 if "embed_tokens" in name else 1.3 / parameter.shape[1] ** 0.5
                parameter.copy_(scale * torch.randn_like(parameter))
            parameter.copy_(parameter.to(getattr(torch, dtype)).float())
    return model


def save_model(model, dtype, files, style, folder):
    state = {name: p.detach().to(getattr(torch, dtype)).contiguous() for name, p in model.named_parameters()}
    if files == 1:
        save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    else:
        names = list(state)
        weight_map = {}
        for number in range(files):
            part = names[number * len(names) // files : (number + 1) * len(names) // files]
            file = f"model-{number + 1:05}-of-{files:05}.safetensors"
            save_file({name: state[name] for name in part}, folder / file, metadata={"format": "pt"})
            weight_map |= {name: file for name in part}
        size = sum(t.numel() * t.element_size() for t in state.values())
        index = {"metadata": {"total_size": size}, "weight_map": weight_map}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n")
    config = json.loads(model.config.to_json_string(use_diff=False))
    dropped = ("_name_or_path", "transformers_version", "dtype", "output_", "return_dict", "chunk_size", "id2label", "label2id")
    config = {key: value for key, value in config.items() if not key.startswith(dropped)}
    config["architectures"] = [type(model).__name__]
    if style == 4:  # as transformers 4 wrote it
        rope = config.pop("rope_parameters")
        config["rope_theta"] = rope.pop("rope_theta")
        config["rope_scaling"] = None if rope["rope_type"] == "default" else rope
        config["torch_dtype"] = dtype
    else:
        config["dtype"] = dtype
    (folder / "config.json").write_text(json.dumps(dict(sorted(config.items())), indent=2) + "\n")


def logits_of(model, inputs):
    return model(input_ids=torch.tensor([inputs])).logits[0]


def logprobs_of(model, datum):
    all_logprobs = logits_of(model, datum["inputs"]).log_softmax(-1)
    return all_logprobs[torch.arange(len(datum["targets"])), torch.tensor(datum["targets"])]


def make_batch():
    generator = torch.Generator().manual_seed(7)
    batch = []
    for length in LENGTHS:
        ids = torch.randint(0, VOCAB, (length + 1,), generator=generator).tolist()
        weights = 0.2 + torch.rand(length, generator=generator)
        weights[torch.rand(length, generator=generator) < 1 / 3] = 0.0
        batch.append({"inputs": ids[:-1], "targets": ids[1:], "weights": weights.tolist()})
    return batch


def describe(tensor):
    """Sum of absolute values, and five entries at evenly spaced flat positions of the [out, in] layout."""
    flat = tensor.detach().flatten()
    positions = [round(i * (len(flat) - 1) / 4) for i in range(5)]
    return {
        "absoluteSum": flat.double().abs().sum().item(),
        "positions": positions,
        "entries": [flat[i].item() for i in positions],
    }


def greedy(model):
    """A prompt whose continuation has no near tie at any token, so that the ids are safe."""
    generator = torch.Generator().manual_seed(11)
    while True:
        prompt = torch.randint(1, VOCAB, (6,), generator=generator).tolist()
        ids, lead = list(prompt), float("inf")
        with torch.no_grad():
            for _ in range(GREEDY):
                best = logits_of(model, ids)[-1].topk(2)
                lead = min(lead, (best.values[0] - best.values[1]).item())
                ids.append(best.indices[0].item())
        continuation = ids[len(prompt) :]
        if lead > 1e-2 and 0 not in continuation and len(set(continuation)) > 5:
            return {"prompt": prompt, "continuation": continuation, "smallestLead": lead}


def make(number, name, folder):
    kind, config, dtype, files, style = FAMILIES[name]
    folder.mkdir(parents=True, exist_ok=True)
    model = make_model(number, kind, config, dtype)
    save_model(model, dtype, files, style, folder)
    loaded, loading = kind.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    assert not loading["missing_keys"] and not loading["unexpected_keys"], loading
    model = loaded.eval()
    batch = make_batch()
    with torch.no_grad():
        logits = [
            {"datum": d, "position": t, "values": logits_of(model, batch[d]["inputs"])[t].tolist()}
            for d, t in ((0, 0), (1, 3), (2, 89))
        ]
        logprobs = [logprobs_of(model, datum).tolist() for datum in batch]
    total = sum(-(torch.tensor(d["weights"]) * logprobs_of(model, d)).sum() for d in batch)
    total.backward()
    norm = torch.linalg.vector_norm(torch.cat([p.grad.flatten() for p in model.parameters()])).item()
    golden = {
        "made": {
            "by": "make_families_golden.py",
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "dtype": "float32",
        },
        "batch": batch,
        "logits": logits,
        "logprobs": logprobs,
        "loss": total.item(),
        "gradientNorm": norm,
        "gradients": {key: describe(p.grad) for key, p in model.named_parameters()},
        "greedy": greedy(model),
    }
    (folder / "golden.json").write_text(json.dumps(golden, separators=(",", ":")) + "\n")
    for path in folder.iterdir():
        path.chmod(0o644)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    for number, name in enumerate(FAMILIES):
        make(number, name, output / name)
        print(f"wrote {output / name}")
