"""
Writes tokenizers of the kinds that published models have, and what the Rust library `tokenizers` encodes with them.

    python make_published_golden.py [OUTPUT_FOLDER]      (needs tokenizers)

smollm2   digits apart, the pattern of GPT-2
llama3    a pattern with numbers of up to three digits, whole words before merges, a token before every text
qwen2     NFC, a pattern with single digits
mistral   pieces of text with a mark for the space and bytes as a last resort
Each is trained on a small invented corpus; published vocabularies are not needed to see that the rules are the same.
"""

import json
import sys
from pathlib import Path

import tokenizers
from make_tokenizer_golden import NASTY, corpus
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<s>", "</s>"]
CODE = [
    "def f(x):\n    return x ** 2  # square\n\n\nprint(f(12345))",
    "for (let i = 0; i < 10; i++) {\n\tconsole.log(`${i}`);\n}\r\n",
    "if (a  &&  b) {  1;  22;   333 }",
    "SELECT * FROM t WHERE id=42;--x",
    "signs:" + " £ § © « ° ± » ¶ ¿" * 40,  # the space and the first byte of £ become one piece, as in real vocabularies
]
MORE = [
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", "a<|im_end|>", "<|im_start|>  x", "<s>[INST] hi [/INST]</s>",
    "<tag>x</tag>", " <tag> ", "I'LL it'S 'tis ’s", "1 22 333 4444 55555", "Ａ１２ ①②", "a\u0301 \u0041\u030a \u1e9b\u0323", "한국어 中文，日本語。", "🧑🏽‍🚀🏳️‍🌈",
    "\ufb01 \u212b", "word\n\n\n\nword", "  \n  \n ", "x" * 70, "\u200d\u200c", "tab\t\t\ttab",
    "\r\n\u0085x", "line\u0085's  \ufeffnext", "a \u0085\u200b\u0085 b\ufeff\ufeff c",  # white space for one library and none for the other
]
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace("{1,3}", "")


def byte_level(**options):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, **options)


def by_pattern(pattern):
    split = pre_tokenizers.Split(Regex(pattern), behavior="isolated", invert=False)
    return pre_tokenizers.Sequence([split, byte_level(use_regex=False)])


def train(pre_tokenizer, normalizer=None, ignore_merges=False):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=[AddedToken(t, normalized=False, special=True) for t in CONTROL],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus() + CODE * 3, trainer)
    tokenizer.add_tokens([AddedToken("<tag>", normalized=False), AddedToken("</tag>", normalized=False)])
    return tokenizer


def smollm2():
    return train(pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level()]))


def llama3():
    tokenizer = train(by_pattern(LLAMA3), ignore_merges=True)
    begin = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 3)])
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), begin])
    return tokenizer


def qwen2():
    return train(by_pattern(QWEN2), normalizer=normalizers.NFC())


def mistral():
    pieces = [f"<0x{byte:02X}>" for byte in range(256)]
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    trainer = trainers.BpeTrainer(
        vocab_size=700, special_tokens=["<unk>", *CONTROL, *pieces], limit_alphabet=90, show_progress=False
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    file = json.loads(tokenizer.to_str())
    file["added_tokens"] = [token for token in file["added_tokens"] if token["content"] not in pieces]
    tokenizer = Tokenizer.from_str(json.dumps(file))
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))]
    )
    return tokenizer


def make(name, tokenizer, folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(json.loads(tokenizer.to_str()), separators=(",", ":")) + "\n")
    texts = NASTY + CODE + MORE
    cases = []
    for text in texts:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        cases.append({"text": text, "ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=False)})
    golden = {"reference": f"tokenizers {tokenizers.__version__}", "cases": cases}
    (folder / "cases.json").write_text(json.dumps(golden, separators=(",", ":")) + "\n")
    print(f"wrote {folder}: {len(cases)} texts")


if __name__ == "__main__":
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    for kind in (smollm2, llama3, qwen2, mistral):
        make(kind.__name__, kind(), output / kind.__name__)
