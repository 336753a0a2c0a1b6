"""A small training in the manner of Tinker's cookbook, with the official client (tinker==0.24.1) and nothing of ours.

usage: python tinker_loop.py URL BASE   prints one JSON object with what it saw.
It creates adapters, fits a text with cross-entropy, samples, rewards small ids with importance sampling, uses a loss of its
own (where torch is there), saves, resumes, compares, lists and deletes.
"""

import json
import sys
import warnings

import tinker
from tinker import types

try:
    import torch
except ImportError:
    torch = None

warnings.filterwarnings("ignore")
url, base = sys.argv[1:3]
service = tinker.ServiceClient(base_url=url, api_key="tml-test")
report = {}

capabilities = service.get_server_capabilities()
report["models"] = [model.model_name for model in capabilities.supported_models]
report["context"] = capabilities.supported_models[0].max_context_length

training = service.create_lora_training_client(base_model=base, rank=4, seed=1, user_metadata={"run": "loop"})
info = training.get_info()
report["info"] = {"rank": info.lora_rank, "is_lora": info.is_lora, "name": info.model_data.model_name}

TEXT = [5, 17, 9, 30, 22, 8, 41, 12]


def supervised(tokens, weights=None):
    targets = tokens[1:]
    return types.Datum(
        model_input=types.ModelInput.from_ints(tokens[:-1]),
        loss_fn_inputs={"target_tokens": targets, "weights": weights or [1.0] * len(targets)},
    )


# Supervised: forward_backward and optim_step posted back to back, as the cookbook pipelines them.
losses = []
for _ in range(6):
    gradient = training.forward_backward([supervised(TEXT), supervised(TEXT[2:])], "cross_entropy")
    step = training.optim_step(types.AdamParams(learning_rate=5e-3, beta1=0.9, beta2=0.95, eps=1e-8))
    losses.append(gradient.result().metrics["loss:sum"])
    report["step_metrics"] = step.result().metrics
report["supervised"] = losses

# Log-probabilities of the text: by forward, and by the sampler that was made from these weights.
forward = training.forward([supervised(TEXT)], "cross_entropy").result()
report["forward"] = forward.loss_fn_outputs[0]["logprobs"].tolist()
sampling = training.save_weights_and_get_sampling_client()
report["compute_logprobs"] = sampling.compute_logprobs(types.ModelInput.from_ints(TEXT)).result()

# Reinforcement of all weights (rank 0): a token is rewarded where its id is small; centred on the mean, on-policy.
whole = service.create_lora_training_client(base_model=base, rank=0)
SMALL = 60
rewards = []
for step in range(12):
    sampling = whole.save_weights_and_get_sampling_client()
    prompt = types.ModelInput.from_ints(TEXT[:3])
    params = types.SamplingParams(max_tokens=6, temperature=1.0, seed=1000 * step)
    result = sampling.sample(prompt, num_samples=32, sampling_params=params).result()
    scores = [[float(token < SMALL) for token in s.tokens] for s in result.sequences]
    mean = sum(map(sum, scores)) / sum(map(len, scores))
    rewards.append(mean)
    data = []
    for sequence, score in zip(result.sequences, scores):
        tokens = TEXT[:3] + list(sequence.tokens)
        observed = 2
        data.append(
            types.Datum(
                model_input=types.ModelInput.from_ints(tokens[:-1]),
                loss_fn_inputs={
                    "target_tokens": tokens[1:],
                    "logprobs": [0.0] * observed + list(sequence.logprobs),
                    "advantages": [0.0] * observed + [(one - mean) / 100 for one in score],
                },
            )
        )
    whole.forward_backward(data, "importance_sampling").result()
    whole.optim_step(types.AdamParams(learning_rate=1e-2, eps=1e-8)).result()
report["rewards"] = rewards

for name, config in [("ppo", {"clip_low_threshold": 0.8, "clip_high_threshold": 1.2}), ("cispo", None), ("dro", {"beta": 0.1})]:
    out = training.forward_backward(data, name, loss_fn_config=config).result()
    report[name] = out.metrics["loss:sum"]

# A loss of one's own: the gradient goes through cross-entropy with weights.
if torch is not None:
    def pull(data, logprobs):
        loss = sum((lp**2).sum() for lp in logprobs)
        return loss, {"pull": loss.item()}

    plain = [types.Datum(d.model_input, {"target_tokens": d.loss_fn_inputs["target_tokens"]}) for d in data[:2]]
    before = training.forward_backward_custom(plain, pull).result().metrics["pull"]
    training.optim_step(types.AdamParams(learning_rate=1e-3, grad_clip_norm=1.0)).result()
    after = training.forward_backward_custom(plain, pull).result().metrics["pull"]
    training.optim_step(types.AdamParams(learning_rate=0.0)).result()
    report["custom"] = [before, after]

# Save and resume: both go on equally.
path = training.save_state("state-1").result().path
report["path"] = path
resumed = service.create_training_client_from_state_with_optimizer(path)
pair = []
for client in (training, resumed):
    first = client.forward([supervised(TEXT)], "cross_entropy").result().metrics["loss:sum"]
    client.forward_backward([supervised(TEXT)], "cross_entropy").result()
    client.optim_step(types.AdamParams(learning_rate=1e-3)).result()
    pair.append([first, client.forward([supervised(TEXT)], "cross_entropy").result().metrics["loss:sum"]])
report["resumed"] = pair

final = training.save_weights_for_sampler("final").result().path
named = service.create_sampling_client(model_path=final)
report["named"] = len(named.sample(types.ModelInput.from_ints(TEXT[:3]), 2, types.SamplingParams(max_tokens=3, stop=[SMALL])).result().sequences)
untouched = service.create_sampling_client(base_model=base)
greedy = types.SamplingParams(max_tokens=4, temperature=0.0)
report["greedy"] = [s.tokens for s in untouched.sample(types.ModelInput.from_ints(TEXT[:3]), 2, greedy).result().sequences]

# A wrong request is told at once and does not disturb what follows.
try:
    training.forward_backward([supervised([5, 10**6, 7])], "cross_entropy").result()
except Exception as error:
    report["refused"] = f"{type(error).__name__}: {error}"
training.forward([supervised(TEXT)], "cross_entropy").result()

rest = service.create_rest_client()
runs = rest.list_training_runs().result().training_runs
report["runs"] = sorted(run.is_lora for run in runs)
model_id = path.split("/")[2]
report["checkpoints"] = sorted(c.checkpoint_id for c in rest.list_checkpoints(model_id).result().checkpoints)
report["archive"] = rest.get_checkpoint_archive_url_from_tinker_path(final).result().url
rest.delete_checkpoint_from_tinker_path(path).result()
report["left"] = sorted(c.checkpoint_id for c in rest.list_checkpoints(model_id).result().checkpoints)

print(json.dumps(report))
