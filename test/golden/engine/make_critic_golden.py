"""
Makes the golden file of the embedded engine's critic with PyTorch and Hugging Face transformers.

    python make_critic_golden.py [OUTPUT_FOLDER]      (needs torch, transformers, safetensors; a few seconds on CPU)

The critic is the tiny Llama of untied/ up to its last normalisation with a value head (width to 1). It writes critic.json:
the head, a batch, and what PyTorch says about it in fp32: values, the clipped loss with its gradients, three AdamW
steps of a critic with a trunk of its own, and the gradient's norms of a policy loss and a value loss on a shared one.
The loss is that of src/algorithm/loss.ts. make_engine_golden.py must have made untied/ before.
"""

import json
import sys
from pathlib import Path

import torch
import transformers
from make_engine_golden import ADAM, LOSSES, describe, loss_of, make_batch, make_model

CLIP, COEFFICIENT = 0.5, 0.5


def values_of(model, head, datum):
    hidden = model.model(input_ids=torch.tensor([datum["inputs"]])).last_hidden_state[0]
    return head(hidden).squeeze(-1)


def value_loss(model, head, batch):
    """The plain sum, and how many weighted values the clip holds back."""
    total, clipped = torch.zeros(()), 0
    for datum in batch:
        value, old = values_of(model, head, datum), torch.tensor(datum["values"])
        returns, weights = torch.tensor(datum["returns"]), torch.tensor(datum["weights"])
        plain = (value - returns) ** 2
        held = (value.clamp(old - CLIP, old + CLIP) - returns) ** 2
        clipped += ((held > plain) & (weights > 0)).sum().item()
        total = total + 0.5 * (weights * torch.maximum(plain, held)).sum()
    return total, clipped


def norm(parameters):
    return torch.linalg.vector_norm(torch.cat([p.grad.flatten() for p in parameters])).item()


def make_critic():
    model = make_model(False)
    generator = torch.Generator().manual_seed(11)
    head = torch.nn.Linear(model.config.hidden_size, 1)
    with torch.no_grad():
        head.weight.copy_(0.1 * torch.randn(head.weight.shape, generator=generator))
        head.bias.copy_(torch.tensor([0.3]))
    batch = make_batch(model)
    for datum in batch:
        current = values_of(model, head, datum).detach()
        noise = lambda: torch.randn(current.shape, generator=generator)  # noqa: E731
        datum["values"] = (current + 0.5 * noise()).tolist()
        datum["returns"] = (current + noise()).tolist()
    return model, head, batch


def trained(model, head):
    named = {name: p for name, p in model.named_parameters() if not name.startswith("lm_head")}
    return named | {"value_head.weight": head.weight, "value_head.bias": head.bias}


def three_steps(model, head, batch):
    """A trunk of its own: decay on matrices, not on norms and the head's bias."""
    parameters = trained(model, head)
    groups = [
        {"params": [p for p in parameters.values() if p.dim() > 1], "weight_decay": ADAM["weightDecay"]},
        {"params": [p for p in parameters.values() if p.dim() == 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(
        groups, lr=ADAM["learningRate"], betas=(ADAM["beta1"], ADAM["beta2"]), eps=ADAM["epsilon"]
    )
    steps = []
    for _ in range(3):
        optimizer.zero_grad()
        total, _ = value_loss(model, head, batch)
        total.backward()
        before = torch.nn.utils.clip_grad_norm_(list(parameters.values()), ADAM["maxGradientNorm"]).item()
        optimizer.step()
        steps.append({"loss": total.item(), "gradientNorm": before})
    return steps, {name: describe(p) for name, p in parameters.items()}


def main(folder):
    model, head, batch = make_critic()
    values = [values_of(model, head, datum).tolist() for datum in batch]
    weight, bias = head.weight.flatten().tolist(), head.bias.tolist()
    total, clipped = value_loss(model, head, batch)
    assert clipped > 2, "the batch must clip"
    total.backward()
    parameters = trained(model, head)
    golden = {
        "made": {"by": "make_critic_golden.py", "torch": torch.__version__, "transformers": transformers.__version__},
        "head": {"weight": weight, "bias": bias},
        "batch": batch,
        "loss": {"type": "value", "clip": CLIP},
        "values": values,
        "sum": total.item(),
        "clipped": clipped,
        "gradientNorm": norm(parameters.values()),
        "gradients": {name: describe(p.grad) for name, p in parameters.items()},
    }
    model.zero_grad()
    head.zero_grad()
    policy, _, _ = loss_of(model, batch, LOSSES["ppo"])
    (policy + COEFFICIENT * value_loss(model, head, batch)[0]).backward()
    golden["shared"] = {
        "coefficient": COEFFICIENT,
        "policyLoss": LOSSES["ppo"],
        "policyNorm": norm(model.parameters()),
        "headNorm": norm(head.parameters()),
    }
    golden["adam"] = ADAM
    golden["steps"], golden["after"] = three_steps(model, head, batch)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "critic.json"
    path.write_text(json.dumps(golden, indent=1) + "\n")
    path.chmod(0o644)
    print(f"wrote {path}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "critic")
