"""
Makes the golden files of low-rank adapters with PyTorch and PEFT.

    python make_lora_golden.py [OUTPUT_FOLDER]      (needs torch, transformers, peft, safetensors, tokenizers; a few seconds on CPU)

The models are those of ../engine/untied (a Llama) and ../families/qwen2 (biases; stored in half precision, read as fp32).
For each it writes, in fp32:
  adapter_config.json, adapter_model.safetensors   adapters as PEFT saves them, B no longer zero; the place of the base is a
                                                   name that whoever reads the folder puts right
  tokenizer.json, tokenizer_config.json            ids that stand for themselves, since the models have no text
  golden.json                                      a batch, and what PyTorch says about it: log-probabilities, loss,
                                                   gradients of the adapters, three AdamW steps
  after-1.safetensors, after-3.safetensors         the adapters after one and three AdamW steps
Sequences are run one by one, without padding, so nothing here depends on how a batch is laid out.
"""

import json
import sys
from pathlib import Path

import peft
import torch
import transformers
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoModelForCausalLM

HERE = Path(__file__).parent
VOCAB, LENGTHS = 61, (12, 7, 20)
ADAM = {
    "learningRate": 1e-2,
    "beta1": 0.9,
    "beta2": 0.95,
    "epsilon": 1e-8,
    "weightDecay": 0.1,
    "maxGradientNorm": 1.0,
}
ALL = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
VARIANTS = {
    "llama": {"base": "engine/untied", "rank": 4, "alpha": 8, "targets": ALL},
    "qwen2": {"base": "families/qwen2", "rank": 3, "alpha": 5, "targets": ["v_proj", "o_proj", "up_proj"]},
}


def make_model(base, rank, alpha, targets):
    torch.manual_seed(20261130)
    model = AutoModelForCausalLM.from_pretrained(HERE.parent / base, dtype=torch.float32, attn_implementation="eager")
    config = LoraConfig(
        r=rank, lora_alpha=alpha, target_modules=targets, lora_dropout=0.0, bias="none", task_type="CAUSAL_LM"
    )
    model = get_peft_model(model, config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.copy_(0.1 * torch.randn_like(parameter))
    return model.eval()


def adapters_of(model):
    """Trainable parameters by the names that PEFT writes into files."""
    return {
        name.replace(".default.weight", ".weight"): parameter
        for name, parameter in model.named_parameters()
        if parameter.requires_grad
    }


def save_adapters(model, base, folder):
    model.save_pretrained(folder)
    (folder / "README.md").unlink()
    path = folder / "adapter_config.json"
    config = json.loads(path.read_text())
    config["base_model_name_or_path"] = base
    config["target_modules"] = sorted(config["target_modules"])
    path.write_text(json.dumps(config, indent=2) + "\n")


def save_tokenizer(folder):
    tokenizer = Tokenizer(models.BPE({str(i): i for i in range(VOCAB)}, [], unk_token="0"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    (folder / "tokenizer.json").write_text(json.dumps(json.loads(tokenizer.to_str()), indent=1) + "\n")
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "0", "pad_token": "0"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")


def make_batch():
    """Sequences with weights, a third of them exactly zero."""
    generator = torch.Generator().manual_seed(11)
    batch = []
    for length in LENGTHS:
        ids = torch.randint(0, VOCAB, (length + 1,), generator=generator).tolist()
        weights = 0.2 + torch.rand(length, generator=generator)
        weights[torch.rand(length, generator=generator) < 1 / 3] = 0.0
        batch.append({"inputs": ids[:-1], "targets": ids[1:], "weights": weights.tolist()})
    return batch


def logprobs_of(model, datum):
    logits = model(input_ids=torch.tensor([datum["inputs"]])).logits[0]
    return logits.log_softmax(-1)[torch.arange(len(datum["targets"])), torch.tensor(datum["targets"])]


def loss_of(model, batch):
    return -sum((torch.tensor(datum["weights"]) * logprobs_of(model, datum)).sum() for datum in batch)


def describe(tensor):
    """Five entries at evenly spaced flat positions of the [out, in] layout."""
    flat = tensor.detach().flatten()
    positions = [round(i * (len(flat) - 1) / 4) for i in range(5)]
    return {"positions": positions, "entries": [flat[i].item() for i in positions]}


def gradients_of(model, batch):
    model.zero_grad()
    total = loss_of(model, batch)
    total.backward()
    adapters = adapters_of(model)
    return {
        "loss": total.item(),
        "gradientNorm": torch.linalg.vector_norm(torch.cat([p.grad.flatten() for p in adapters.values()])).item(),
        "gradients": {name: describe(p.grad) for name, p in adapters.items()},
    }


def adam_steps(model, batch, folder):
    adapters = adapters_of(model)
    optimizer = torch.optim.AdamW(
        adapters.values(),
        lr=ADAM["learningRate"],
        betas=(ADAM["beta1"], ADAM["beta2"]),
        eps=ADAM["epsilon"],
        weight_decay=ADAM["weightDecay"],
    )
    steps = []
    for number in (1, 2, 3):
        optimizer.zero_grad()
        total = loss_of(model, batch)
        total.backward()
        norm = torch.nn.utils.clip_grad_norm_(adapters.values(), ADAM["maxGradientNorm"]).item()
        assert norm > 2 * ADAM["maxGradientNorm"], "the clip must act"
        optimizer.step()
        steps.append({"loss": total.item(), "gradientNorm": norm})
        if number in (1, 3):
            state = {name: p.detach().clone() for name, p in adapters.items()}
            save_file(state, folder / f"after-{number}.safetensors", metadata={"format": "pt"})
    return steps


def make(variant, folder):
    folder.mkdir(parents=True, exist_ok=True)
    model = make_model(**VARIANTS[variant])
    save_adapters(model, VARIANTS[variant]["base"], folder)
    save_tokenizer(folder)
    batch = make_batch()
    with torch.no_grad():
        logprobs = [logprobs_of(model, datum).tolist() for datum in batch]
    golden = {
        "made": {
            "by": "make_lora_golden.py",
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "peft": peft.__version__,
            "dtype": "float32",
        },
        "batch": batch,
        "logprobs": logprobs,
        **gradients_of(model, batch),
        "adam": ADAM,
        "steps": adam_steps(model, batch, folder),
    }
    (folder / "golden.json").write_text(json.dumps(golden, indent=1) + "\n")
    for path in folder.iterdir():
        path.chmod(0o644)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    for name in VARIANTS:
        make(name, output / name)
        print(f"wrote {output / name}")
