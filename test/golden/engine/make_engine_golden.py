"""
Makes the golden files of the embedded engine with PyTorch and Hugging Face transformers.

    python make_engine_golden.py [OUTPUT_FOLDER]      (needs torch, transformers, safetensors; a few seconds on CPU)

For a tiny random Llama with tied and with untied embeddings it writes, in fp32:
  config.json, model.safetensors   the model as a Hugging Face folder (tied: keys of transformers 5, untied: of 4)
  golden.json                      a batch, and what PyTorch says about it: logits, log-probabilities, losses,
                                   gradients, three AdamW steps, a greedy continuation
  after-1.safetensors, after-3.safetensors   all parameters after one and three AdamW steps
Sequences are run one by one, without padding, so nothing here depends on how a batch is laid out.
The definitions of the losses are those of src/algorithm/loss.ts.
"""

import json
import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM

VOCAB, CONTEXT, LENGTHS = 61, 32, (12, 7, 20)
MAX_LOG_RATIO = 20.0
ADAM = {
    "learningRate": 1e-2,
    "beta1": 0.9,
    "beta2": 0.95,
    "epsilon": 1e-8,
    "weightDecay": 0.1,
    "maxGradientNorm": 1.0,
}
# Loss report and gradients are recorded for each of these.
LOSSES = {
    "crossEntropy": {"type": "crossEntropy"},
    "importanceSampling": {"type": "importanceSampling"},
    "ppo": {"type": "ppo", "clipLow": 0.2, "clipHigh": 0.28},
    "ppoK1": {"type": "ppo", "clipLow": 0.2, "clipHigh": 0.28, "kl": {"estimator": "k1", "coefficient": 0.1}},
    "ppoK3": {"type": "ppo", "clipLow": 0.2, "clipHigh": 0.28, "kl": {"estimator": "k3", "coefficient": 0.1}},
}


def make_model(tied):
    torch.manual_seed(20261129 + tied)
    config = LlamaConfig(
        vocab_size=VOCAB,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT,
        rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
        tie_word_embeddings=tied,
        bos_token_id=None,
        eos_token_id=0,
        pad_token_id=None,
        attn_implementation="eager",
    )
    model = LlamaForCausalLM(config).float().eval()
    with torch.no_grad():  # large enough that attention and gates are far from uniform
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter.copy_(1 + 0.2 * torch.randn_like(parameter))
            else:
                scale = 0.3 if "embed_tokens" in name else 1.3 / parameter.shape[1] ** 0.5
                parameter.copy_(scale * torch.randn_like(parameter))
    return model


def save_model(model, tied, folder):
    state = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    config = model.config.to_dict()
    kept = [
        "architectures", "attention_bias", "bos_token_id", "eos_token_id", "head_dim", "hidden_act", "hidden_size",
        "initializer_range", "intermediate_size", "max_position_embeddings", "mlp_bias", "model_type",
        "num_attention_heads", "num_hidden_layers", "num_key_value_heads", "rms_norm_eps", "tie_word_embeddings",
        "vocab_size",
    ]
    written = {key: config[key] for key in kept} | {"architectures": ["LlamaForCausalLM"]}
    if tied:
        written |= {"rope_parameters": config["rope_parameters"], "dtype": "float32"}
    else:
        written |= {"rope_theta": config["rope_parameters"]["rope_theta"], "rope_scaling": None, "torch_dtype": "float32"}
    (folder / "config.json").write_text(json.dumps(dict(sorted(written.items())), indent=2) + "\n")


def logits_of(model, inputs):
    return model(input_ids=torch.tensor([inputs])).logits[0]


def logprobs_of(model, datum):
    all_logprobs = logits_of(model, datum["inputs"]).log_softmax(-1)
    return all_logprobs[torch.arange(len(datum["targets"])), torch.tensor(datum["targets"])]


def make_batch(model):
    """Sequences with weights (a third exactly zero), and sampled and reference log-probabilities near the model's."""
    generator = torch.Generator().manual_seed(7)
    batch = []
    for length in LENGTHS:
        ids = torch.randint(0, VOCAB, (length + 1,), generator=generator).tolist()
        datum = {"inputs": ids[:-1], "targets": ids[1:]}
        current = logprobs_of(model, datum).detach()
        noise = lambda scale: scale * torch.randn(length, generator=generator)  # noqa: E731
        weights = 0.2 + torch.rand(length, generator=generator)
        weights[torch.rand(length, generator=generator) < 1 / 3] = 0.0
        datum["weights"] = weights.tolist()
        datum["logprobs"] = (current + noise(0.5)).tolist()
        datum["advantages"] = noise(1.0).tolist()
        datum["referenceLogprobs"] = (current + noise(0.7)).tolist()
        batch.append(datum)
    return batch


def loss_of(model, batch, loss):
    """The plain sum over all tokens, and how many weighted tokens each side of the clip holds back."""
    total, clipped_high, clipped_low = torch.zeros(()), 0, 0
    for datum in batch:
        logprobs, weights = logprobs_of(model, datum), torch.tensor(datum["weights"])
        if loss["type"] == "crossEntropy":
            total = total - (weights * logprobs).sum()
            continue
        advantages = torch.tensor(datum["advantages"])
        ratio = (logprobs - torch.tensor(datum["logprobs"])).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
        objective = ratio * advantages
        if loss["type"] == "ppo":
            low, high = 1 - loss["clipLow"], 1 + loss["clipHigh"]
            clipped_high += ((ratio > high) & (advantages > 0) & (weights > 0)).sum().item()
            clipped_low += ((ratio < low) & (advantages < 0) & (weights > 0)).sum().item()
            objective = torch.minimum(objective, ratio.clamp(low, high) * advantages)
        if "kl" in loss:
            difference = torch.tensor(datum["referenceLogprobs"]) - logprobs
            k3 = difference.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp() - difference - 1
            kl = k3 if loss["kl"]["estimator"] == "k3" else -difference
            objective = objective - loss["kl"]["coefficient"] * kl
        total = total - (weights * objective).sum()
    return total, clipped_high, clipped_low


def gradient_norm(model):
    return torch.linalg.vector_norm(torch.cat([p.grad.flatten() for p in model.parameters()])).item()


def describe(tensor):
    """Sum, sum of absolute values, and five entries at evenly spaced flat positions of the [out, in] layout."""
    flat = tensor.detach().flatten()
    positions = [round(i * (len(flat) - 1) / 4) for i in range(5)]
    return {
        "sum": flat.double().sum().item(),
        "absoluteSum": flat.double().abs().sum().item(),
        "positions": positions,
        "entries": [flat[i].item() for i in positions],
    }


def describe_losses(model, batch):
    described = {}
    for name, loss in LOSSES.items():
        model.zero_grad()
        total, clipped_high, clipped_low = loss_of(model, batch, loss)
        total.backward()
        assert loss["type"] != "ppo" or (clipped_high > 0 and clipped_low > 0), "the batch must clip on both sides"
        described[name] = {
            "loss": loss,
            "sum": total.item(),
            "clippedHigh": clipped_high,
            "clippedLow": clipped_low,
            "gradientNorm": gradient_norm(model),
            "gradients": {key: describe(p.grad) for key, p in model.named_parameters()},
        }
    return described


def adam_steps(model, batch, folder):
    """Three steps on the crossEntropy loss; decay on matrices (embeddings too), not on norm weights."""
    parameters = list(model.parameters())
    matrices, vectors = [p for p in parameters if p.dim() > 1], [p for p in parameters if p.dim() == 1]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": ADAM["weightDecay"]}, {"params": vectors, "weight_decay": 0.0}],
        lr=ADAM["learningRate"],
        betas=(ADAM["beta1"], ADAM["beta2"]),
        eps=ADAM["epsilon"],
    )
    steps = []
    for number in (1, 2, 3):
        optimizer.zero_grad()
        total, _, _ = loss_of(model, batch, LOSSES["crossEntropy"])
        total.backward()
        norm = torch.nn.utils.clip_grad_norm_(parameters, ADAM["maxGradientNorm"]).item()
        assert norm > 2 * ADAM["maxGradientNorm"], "the clip must act"
        optimizer.step()
        described = {key: describe(p) for key, p in model.named_parameters()} if number in (1, 3) else None
        steps.append({"loss": total.item(), "gradientNorm": norm, "parameters": described})
        if number in (1, 3):
            state = {key: p.detach().clone() for key, p in model.named_parameters()}
            save_file(state, folder / f"after-{number}.safetensors", metadata={"format": "pt"})
    return steps


def greedy(model, prompt, count):
    """The continuation, and the smallest lead of the best logit over the second: ids are safe only if it is large."""
    ids, lead = list(prompt), float("inf")
    with torch.no_grad():
        for _ in range(count):
            best = logits_of(model, ids)[-1].topk(2)
            lead = min(lead, (best.values[0] - best.values[1]).item())
            ids.append(best.indices[0].item())
    assert lead > 1e-3, f"the greedy continuation is a near tie ({lead}); choose another prompt"
    return {"prompt": list(prompt), "continuation": ids[len(prompt):], "smallestLead": lead}


def make(tied, folder):
    folder.mkdir(parents=True, exist_ok=True)
    model = make_model(tied)
    save_model(model, tied, folder)
    batch = make_batch(model)
    last = len(batch[0]["inputs"]) - 1
    with torch.no_grad():
        logits = [
            {"datum": d, "position": t, "values": logits_of(model, batch[d]["inputs"])[t].tolist()}
            for d, t in ((0, last), (0, 0), (1, 3), (2, 19))
        ]
        logprobs = [logprobs_of(model, datum).tolist() for datum in batch]
    golden = {
        "made": {
            "by": "make_engine_golden.py",
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "dtype": "float32",
        },
        "batch": batch,
        "logits": logits,
        "logprobs": logprobs,
        "losses": describe_losses(model, batch),
        "greedy": greedy(model, (5, 17, 40, 2, 33), 16),
        "adam": ADAM,
        "steps": adam_steps(model, batch, folder),
    }
    (folder / "golden.json").write_text(json.dumps(golden, indent=1) + "\n")
    for path in folder.iterdir():
        path.chmod(0o644)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    for variant, is_tied in (("tied", True), ("untied", False)):
        make(is_tied, output / variant)
        print(f"wrote {output / variant}")
