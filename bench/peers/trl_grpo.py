"""
The peers of `npm run bench -- grpo`: one whole step of GRPO on CPU in fp32, with random weights.

Answers one JSON object a line on standard output to each JSON line on standard input (see bench/worker.ts):
  {"op": "info"}                                  versions
  {"op": "prepare", "model": {...}, "threads": n} a Llama of this shape with random weights
  {"op": "step", "name": "single", ...}           a step of TRL's GRPOTrainer: sampling, reward, update (beta 0)
  {"op": "step", "name": "multi", ...}            the same trainer and update; it is given rollouts that `generate` played in lock-step, turn after turn
  {"op": "step", "name": "multi-sorted", ...}     the same rollouts and an update in PyTorch alone, sequences of like length together
  {"op": "peak"}                                  largest resident memory of this process so far, bytes

How many tokens each rollout has is given (bench/grpo-cases.ts). Where rows of a batch differ, `generate` runs until the
longest is done, as it does in the loops of Search-R1 and its relatives; what a shorter row wrote beyond its length is dropped.
"""

import contextlib
import json
import os
import resource
import sys
import tempfile
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")
MODEL, OPTIMIZER, SHAPE = None, None, None
MICRO_BATCH = 8
# The most tokens of one micro-batch of a multi-turn update, padding included: as many as our side computes at once.
TOKEN_BUDGET = 4096
# The same of TRL's trainer, which keeps several copies of the logits: with 4,096 a machine of 24 GB runs out of memory.
TRAINER_TOKEN_BUDGET = 2048


def info(_):
    import torch
    import transformers
    import trl

    return {"name": f"TRL {trl.__version__}, transformers {transformers.__version__}, PyTorch {torch.__version__}, fp32"}


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
        eos_token_id=0,
        pad_token_id=0,
    )
    MODEL = LlamaForCausalLM(config).float()
    OPTIMIZER = torch.optim.AdamW(MODEL.parameters(), lr=1e-6, weight_decay=0.0)
    return {"parameters": sum(p.numel() for p in MODEL.parameters())}


def step(request):
    return sorted_step(request) if request["name"] == "multi-sorted" else trl_step(request)


# --- TRL -------------------------------------------------------------------------------------------------------------


def number_tokenizer():
    """A tokenizer whose words are the ids: "5 17" is [5, 17]."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = {str(i): i for i in range(SHAPE["vocabularySize"])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="0"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="0", pad_token="0")


def trl_step(request):
    import torch
    from datasets import Dataset
    from transformers import TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    plans = request["rollouts"]
    rollouts, completion = len(plans), max(turns(plan) for plan in plans)
    generator = torch.Generator().manual_seed(request["round"])
    size = (request["questions"], request["prompt"])
    ids = torch.randint(1, SHAPE["vocabularySize"], size, generator=generator).tolist()
    prompts = [" ".join(map(str, row)) for row in ids]
    single = request["name"] == "single"
    micro = min(MICRO_BATCH if single else divisor(rollouts, TRAINER_TOKEN_BUDGET // (request["prompt"] + completion)), rollouts)
    config = GRPOConfig(
        output_dir=tempfile.mkdtemp(prefix="trl-grpo-"),
        use_cpu=True,
        bf16=False,
        fp16=False,
        gradient_checkpointing=False,
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=rollouts // micro,
        num_generations=request["group"],
        max_completion_length=completion,
        generation_kwargs={"min_new_tokens": completion},
        temperature=1.0,
        beta=0.0,
        max_steps=1,
        learning_rate=1e-6,
        max_grad_norm=1.0,
        logging_strategy="no",
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )
    clock, lengths = {"sampling": 0.0}, []

    class Clock(TrainerCallback):
        def on_step_begin(self, *_, **__):
            clock["start"] = time.perf_counter()

        def on_step_end(self, *_, **__):
            clock["end"] = time.perf_counter()

    def reward(completion_ids, **_):
        lengths.extend(len(row) for row in completion_ids)
        return [float(i % 2) for i, _ in enumerate(completion_ids)]

    def play_all(texts, _):
        rows, masks = play([[int(word) for word in text.split()] for text in texts], plans)
        size = request["prompt"]
        return {
            "prompt_ids": [row[:size] for row in rows],
            "completion_ids": [row[size:] for row in rows],
            "logprobs": None,
            "env_mask": [mask[size:] for mask in masks],
        }

    trainer = GRPOTrainer(
        model=MODEL,
        reward_funcs=reward,
        args=config,
        train_dataset=Dataset.from_dict({"prompt": prompts}),
        processing_class=number_tokenizer(),
        callbacks=[Clock()],
        rollout_func=None if single else play_all,
    )
    generate = trainer._generate_and_score_completions

    def timed(*args, **kwargs):
        # On_step_begin comes after the first inputs are there in some versions: the step starts with its sampling.
        start = time.perf_counter()
        clock["start"] = min(clock.get("start", start), start)
        result = generate(*args, **kwargs)
        clock["sampling"] += time.perf_counter() - start
        return result

    trainer._generate_and_score_completions = timed
    trainer.train()
    if lengths != [turns(plan) for plan in plans]:
        raise ValueError(f"completions of {[turns(plan) for plan in plans]} tokens were expected, got {lengths}")
    seconds = clock["end"] - clock["start"]
    return {
        "seconds": seconds,
        "sampling": clock["sampling"],
        "update": seconds - clock["sampling"],
        "sampledTokens": sum(turn["completion"] for plan in plans for turn in plan),
        "tokens": sum(lengths) + rollouts * request["prompt"],
    }


def turns(plan):
    """Tokens of a rollout after its prompt."""
    return sum(turn["completion"] + turn["observation"] for turn in plan)


def divisor(count, most):
    """The largest divisor of `count` up to `most`."""
    return max(d for d in range(1, count + 1) if count % d == 0 and d <= max(1, most))


# --- generate in lock-step --------------------------------------------------------------------------------------------


def sorted_step(request):
    import torch

    start = time.perf_counter()
    torch.manual_seed(request["round"])
    prompts = torch.randint(1, SHAPE["vocabularySize"], (request["questions"], request["prompt"])).tolist()
    plans, group = request["rollouts"], request["group"]
    MODEL.eval()
    rows, masks = play([prompts[i // group] for i in range(len(plans))], plans)
    sampled = time.perf_counter()
    update(rows, masks)
    end = time.perf_counter()
    return {
        "seconds": end - start,
        "sampling": sampled - start,
        "update": end - sampled,
        "sampledTokens": sum(map(sum, masks)),
        "tokens": sum(map(len, rows)),
    }


def play(prompts, plans):
    """All tokens of each rollout, and of each whether the model wrote it."""
    import torch

    rows = [list(prompt) for prompt in prompts]
    masks = [[0] * len(row) for row in rows]
    for turn in range(max(map(len, plans))):
        playing = [i for i, plan in enumerate(plans) if turn < len(plan)]
        written = generate_rows([rows[i] for i in playing], max(plans[i][turn]["completion"] for i in playing))
        for i, new in zip(playing, written):
            completion, observation = plans[i][turn]["completion"], plans[i][turn]["observation"]
            rows[i] += new[:completion] + torch.randint(1, SHAPE["vocabularySize"], (observation,)).tolist()
            masks[i] += [1] * completion + [0] * observation
    return rows, masks


def generate_rows(rows, count):
    import torch

    longest = max(map(len, rows))
    ids = torch.tensor([[0] * (longest - len(row)) + row for row in rows])
    attention = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
    with torch.inference_mode():
        output = MODEL.generate(ids, attention_mask=attention, do_sample=True, temperature=1.0, top_k=0, min_new_tokens=count, max_new_tokens=count)
    return output[:, longest:].tolist()


def update(rows, masks):
    """Clipped policy loss over all sampled tokens, sequences of like length together, AdamW."""
    import torch

    MODEL.train()
    total = sum(map(sum, masks))
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    while order:
        longest = len(rows[order[-1]])
        count = max(1, min(len(order), TOKEN_BUDGET // longest))
        batch, order = order[-count:], order[:-count]
        ids = torch.tensor([rows[i] + [0] * (longest - len(rows[i])) for i in batch])
        attention = torch.tensor([[1] * len(rows[i]) + [0] * (longest - len(rows[i])) for i in batch])
        mask = torch.tensor([masks[i] + [0] * (longest - len(rows[i])) for i in batch])[:, 1:].float()
        advantages = torch.tensor([1.0 if i % 2 else -1.0 for i in batch])[:, None]
        logits = MODEL(input_ids=ids[:, :-1], attention_mask=attention[:, :-1], use_cache=False).logits
        logprobs = logits.log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]
        ratio = (logprobs - logprobs.detach()).exp()
        objective = torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)
        (-(objective * mask).sum() / total).backward()
    torch.nn.utils.clip_grad_norm_(MODEL.parameters(), 1.0)
    OPTIMIZER.step()
    OPTIMIZER.zero_grad()


def peak(_):
    return {"bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}


OPERATIONS = {"info": info, "prepare": prepare, "step": step, "peak": peak}

for line in sys.stdin:
    message = json.loads(line)
    try:
        with contextlib.redirect_stdout(sys.stderr):  # the trainer prints its metrics
            answer = {"ok": True, **OPERATIONS[message["op"]](message)}
    except Exception as error:  # the bench decides what a failure means
        answer = {"ok": False, "error": f"{type(error).__name__}: {error}"}
    sys.stdout.write(f"{json.dumps(answer)}\n")
    sys.stdout.flush()
