"""
Makes the golden files of GGUF with the Python package `gguf` and Hugging Face transformers.

    python make_gguf_golden.py [OUTPUT_FOLDER]      (needs gguf, torch, transformers, safetensors)

blocks.gguf, blocks.safetensors   a tensor of each supported type, and what `gguf.dequantize` makes of it
llama.gguf, llama.json            a tiny Llama with Llama 3's rope factors and a tokenizer (weights F16, Q8_0, Q4_0, Q4_1),
                                  with what PyTorch computes with the same weights in fp32
qwen2.gguf, qwen2.json; qwen3.gguf, qwen3.json   the same with biases, and with normalised heads
Blocks of the K types are random bytes with moderate scales: the package cannot quantise to them.
"""

import json
import math
import sys
from pathlib import Path

import gguf
import numpy as np
import torch
import transformers
from gguf import GGMLQuantizationType as T
from gguf.quants import dequantize, quantize
from safetensors.numpy import save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers.pre_tokenizers import ByteLevel
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM

GREEDY = 32
# Offsets of the two-byte floats in a block of a K type.
HALVES = {T.Q4_K: (0, 2), T.Q5_K: (0, 2), T.Q6_K: (208,)}


def random_blocks(kind, count, generator):
    _, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = generator.integers(0, 256, (count, size), dtype=np.uint8)
    for at in HALVES[kind]:
        blocks[:, at : at + 2] = generator.normal(0, 0.01, count).astype(np.float16).view(np.uint8).reshape(count, 2)
    return blocks


def make_blocks(output):
    generator = np.random.default_rng(5)
    writer = gguf.GGUFWriter(output / "blocks.gguf", "llama")
    expected = {}
    for kind in (T.F32, T.F16, T.Q8_0, T.Q4_0, T.Q4_1):
        values = generator.normal(0, 1, (4, 64)).astype(np.float32)
        stored = values if kind == T.F32 else values.astype(np.float16) if kind == T.F16 else quantize(values, kind)
        writer.add_tensor(kind.name, stored, raw_dtype=kind)
        expected[kind.name] = stored.astype(np.float32) if kind in (T.F32, T.F16) else dequantize(stored, kind)
    for kind in HALVES:
        stored = random_blocks(kind, 6, generator).reshape(2, -1)
        writer.add_tensor(kind.name, stored, raw_dtype=kind)
        expected[kind.name] = dequantize(stored, kind).reshape(2, 768)
    for step in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file):
        step()
    writer.close()
    save_file(expected, output / "blocks.safetensors")


# --- tiny models ---------------------------------------------------------------------------------------------------

MERGES = ["t h", "th e", "Ġ the", "i n", "Ġ in", "e r", "r e", "o n", "Ġ Ġ", "1 2"]
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def vocabulary():
    byte_pieces = sorted(ByteLevel.alphabet())
    return CONTROL + byte_pieces + [merge.replace(" ", "") for merge in MERGES] + ["<tag>"]


TEXTS = [
    "", "the reon 12 123  1", "  the\n\n  1\t2", "<|im_start|>user\nin<|im_end|>\n", "a<tag>b", "naïve 😀 日本 e\u0301", "it's THE'S x=1;\r\n",
    "x\u0085y\ufeffz\u2003", "[\n    1,\n    22]",
]
QWEN2 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def reference_tokenizer(pre):
    """What the model's own tokenizer.json says; transformers, loading the GGUF, forgets how words are cut."""
    vocab = {piece: i for i, piece in enumerate(vocabulary())}
    tokenizer = Tokenizer(models.BPE(vocab, [tuple(merge.split(" ")) for merge in MERGES]))
    if pre == "smollm":
        parts = [pre_tokenizers.Digits(individual_digits=True), ByteLevel(add_prefix_space=False)]
    else:
        tokenizer.normalizer = normalizers.NFC()
        parts = [pre_tokenizers.Split(Regex(QWEN2), "isolated"), ByteLevel(add_prefix_space=False, use_regex=False)]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(parts)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_tokens([AddedToken(token, normalized=False) for token in [*CONTROL, "<tag>"]])
    return tokenizer


LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
SHAPE = {
    "vocab_size": len(vocabulary()),
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 64,
    "bos_token_id": None,
    "eos_token_id": 0,
    "attn_implementation": "eager",
}
PLAIN = {"rope_type": "default", "rope_theta": 10000.0}
MODELS = {
    "llama": (LlamaForCausalLM, LlamaConfig(**SHAPE, rope_parameters=LLAMA3), gguf.MODEL_ARCH.LLAMA, "smollm"),
    "qwen2": (Qwen2ForCausalLM, Qwen2Config(**SHAPE, rope_parameters=PLAIN, tie_word_embeddings=True), gguf.MODEL_ARCH.QWEN2, "qwen2"),
    "qwen3": (Qwen3ForCausalLM, Qwen3Config(**SHAPE, head_dim=24, rope_parameters=PLAIN), gguf.MODEL_ARCH.QWEN3, "qwen2"),
}


def rope_factors(config):
    """What the converter of llama.cpp stores as rope_freqs.weight: by what each frequency is divided."""
    rope, size = config.rope_parameters, config.head_dim
    factors = []
    for pair in range(size // 2):
        wavelength = 2 * math.pi * rope["rope_theta"] ** (2 * pair / size)
        old, factor = rope["original_max_position_embeddings"], rope["factor"]
        low, high = rope["low_freq_factor"], rope["high_freq_factor"]
        if wavelength < old / high:
            factors.append(1.0)
        elif wavelength > old / low:
            factors.append(factor)
        else:
            smooth = (old / wavelength - low) / (high - low)
            factors.append(1 / ((1 - smooth) / factor + smooth))
    return np.array(factors, dtype=np.float32)


def interleave(weight, heads):
    """Rows of a llama's queries and keys in the order of GGUF: the two halves of each head's rows alternate."""
    return weight.reshape(heads, 2, -1, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)


def random_weights(model):
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.copy_(0.5 * torch.randn_like(parameter))
            elif parameter.dim() == 1:
                parameter.copy_(1 + 0.2 * torch.randn_like(parameter))
            else:
                scale = 0.3 if "embed_tokens" in name else 1.3 / parameter.shape[1] ** 0.5
                parameter.copy_(scale * torch.randn_like(parameter))


def stored_type(name):
    if "norm" in name or "bias" in name:
        return T.F32
    kinds = {"q_proj": T.Q4_1, "k_proj": T.Q8_0, "down_proj": T.Q4_0, "lm_head": T.F16, "embed": T.Q8_0}
    return next((kind for part, kind in kinds.items() if part in name), T.F16)


def write_model(output, name, model, arch, pre):
    config = model.config
    writer = gguf.GGUFWriter(output / f"{name}.gguf", gguf.MODEL_ARCH_NAMES[arch])
    writer.add_name(f"tiny {name}")
    writer.add_license("apache-2.0")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    if arch == gguf.MODEL_ARCH.LLAMA:
        writer.add_rope_dimension_count(size)
        writer.add_vocab_size(config.vocab_size)
    if arch == gguf.MODEL_ARCH.QWEN3:
        writer.add_key_length(size)
        writer.add_value_length(size)
    pieces = vocabulary()
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(pieces)
    types = [gguf.TokenType.CONTROL] * len(CONTROL) + [gguf.TokenType.NORMAL] * (len(pieces) - len(CONTROL) - 1)
    writer.add_token_types([*types, gguf.TokenType.USER_DEFINED])
    writer.add_token_merges(MERGES)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_add_bos_token(False)
    writer.add_chat_template("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
    names = gguf.get_tensor_name_map(arch, config.num_hidden_layers)
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            values = parameter.numpy()
            is_rotated = key.endswith(("q_proj.weight", "k_proj.weight")) and arch == gguf.MODEL_ARCH.LLAMA
            heads = config.num_attention_heads if "q_proj" in key else config.num_key_value_heads
            if is_rotated:
                values = interleave(values, heads)
            kind = stored_type(key)
            stored = values if kind == T.F32 else values.astype(np.float16) if kind == T.F16 else quantize(values, kind)
            writer.add_tensor(names.get_name(key, (".weight", ".bias")), np.ascontiguousarray(stored), raw_dtype=kind)
            read = stored.astype(np.float32) if kind in (T.F32, T.F16) else dequantize(stored, kind)
            if is_rotated:  # back to where transformers has them
                read = read.reshape(heads, -1, 2, read.shape[1]).swapaxes(1, 2).reshape(read.shape)
            parameter.copy_(torch.from_numpy(np.ascontiguousarray(read)))
    if config.rope_parameters["rope_type"] == "llama3":
        writer.add_tensor("rope_freqs.weight", rope_factors(config), raw_dtype=T.F32)
    for step in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file):
        step()
    writer.close()


def logits_of(model, ids):
    return model(input_ids=torch.tensor([ids])).logits[0]


def greedy(model):
    generator = torch.Generator().manual_seed(3)
    while True:
        prompt = torch.randint(3, model.config.vocab_size, (6,), generator=generator).tolist()
        ids, lead = list(prompt), float("inf")
        for _ in range(GREEDY):
            best = logits_of(model, ids)[-1].topk(2)
            lead = min(lead, (best.values[0] - best.values[1]).item())
            ids.append(best.indices[0].item())
        continuation = ids[len(prompt) :]
        if lead > 3e-3 and 2 not in continuation and len(set(continuation)) > 5:
            return {"prompt": prompt, "continuation": continuation, "smallestLead": lead}


def make_model(output, number, name):
    kind, config, arch, pre = MODELS[name]
    torch.manual_seed(number)
    model = kind(config).float().eval()
    random_weights(model)
    write_model(output, name, model, arch, pre)
    ids = torch.randint(3, config.vocab_size, (40,), generator=torch.Generator().manual_seed(9)).tolist()
    with torch.no_grad():
        logprobs = logits_of(model, ids)[:-1].log_softmax(-1)
        golden = {
            "made": {"by": "make_gguf_golden.py", "torch": torch.__version__, "transformers": transformers.__version__},
            "tokens": ids,
            "logprobs": logprobs.gather(-1, torch.tensor(ids)[1:, None])[:, 0].tolist(),
            "greedy": greedy(model),
            "texts": [{"text": text, "ids": reference_tokenizer(pre).encode(text).ids} for text in TEXTS],
        }
    (output / f"{name}.json").write_text(json.dumps(golden, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    make_blocks(folder)
    for number, name in enumerate(MODELS):
        make_model(folder, number, name)
    for path in folder.iterdir():
        if path.is_file():
            path.chmod(0o644)
