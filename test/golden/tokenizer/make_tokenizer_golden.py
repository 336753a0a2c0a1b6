"""Writes byte-pair.json beside this file: what the Rust library `tokenizers` learns and encodes.

Usage: python make_tokenizer_golden.py            (writes the golden)
       python make_tokenizer_golden.py FOLDER     (compares the golden with FOLDER/tokenizer.json)
"""
import json
import random
import sys
from pathlib import Path

import tokenizers
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

GOLDEN = Path(__file__).with_name("byte-pair.json")
TAGS = ["<think>", "</think>", "<search>", "</search>", "<information>", "</information>", "<answer>", "</answer>"]
CONTROL = ["<|endoftext|>", "<|padding|>"]

NASTY = [
    "", " ", "  ", "\n", "\n\n", " \n ", "\t\tx", "a", " a", "a ", "Hello, world!", "it's we'll I'd they've 'tis IT'S",
    "The airport of Nice lies in France.", "12345 67 8-9 3.14 1st", "aaaaaaa aaaaa aaaa aaa aa a", "aAaAbB",
    "<search> Paris </search>", "<answer>x</answer><answer>", "a<search>b", "<Search>", "< search>", "<search", "search>",
    "<|endoftext|>", "<|endoftext|", "x<|padding|>y", "<<search>>", "</</search>", "<think></think>", "<answer>\n\n<search>",
    "naïve café Zürich São Paulo", "nai\u0308ve", "Ελλάδα ΣΊΣΥΦΟΣ", "Москва", "日本語のテスト", "한국어", "العربية", "हिन्दी", "ไทย",
    "😀", "👩‍👩‍👧‍👦 🇫🇷 👍🏽", "😀😀", "\u00a0x\u00a0", "x\u2003y", "x\u3000y", "x\u200by", "x\u2028y\u2029z", "x\u0085y", "\u0085\u0085", "\ufeffx", "x \ufeff y",
    "x\u001cy", "\u0000\u0001", "x\u000by\u000c", "\r\n\r\n", "½ ² Ⅷ ௧ ㊿", "_snake_case __init__", "don’t", "«quoted»", "a" * 300, "ab" * 200, "!?" * 50,
    " ".join(["word"] * 30), "tab\tseparated\tvalues", "trailing space \n", "\ufffd", "x\u0301\u0301\u0301", "ﬁ ǅ ß İ ı",
]


def corpus():
    """Sentences of invented names, in several scripts, with repeats, digits and overlapping pairs."""
    chance = random.Random(7)
    syllables = ["ka", "lo", "mi", "ren", "sta", "tor", "ve", "zu", "ü", "ñe", "ло", "京", "aa", "aaa", "bab"]
    names = ["".join(chance.choices(syllables, k=chance.randint(2, 4))).capitalize() for _ in range(150)]
    lines = []
    for i in range(400):
        a, b = chance.choice(names), chance.choice(names)
        lines.append(
            chance.choice(
                [
                    f"{a} Airport (code {i * 37 % 1000}) lies in {b}.",
                    f"The capital of {b} is {a}; it's home to {chance.randint(1, 9999)} people.",
                    f"Who doesn't know {a}?\n\n{b} does, they'll say...",
                    f"\t{a}-{b}  'aaaa' aaaaa 😀 {b.lower()}",
                ]
            )
        )
    return lines


def make():
    texts = corpus()
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=700,
        min_frequency=2,
        special_tokens=[AddedToken(t, normalized=False) for t in CONTROL + TAGS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    pieces = sorted(model["vocab"], key=model["vocab"].get)
    encoded = [tokenizer.encode(text).ids for text in NASTY]
    golden = {
        "reference": f"tokenizers {tokenizers.__version__}",
        "vocabularySize": 700,
        "tags": TAGS,
        "corpus": texts,
        "vocabulary": pieces,
        "merges": [list(merge) for merge in model["merges"]],
        "cases": [
            {"text": text, "ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=False)}
            for text, ids in zip(NASTY, encoded)
        ],
    }
    GOLDEN.write_text(json.dumps(golden, ensure_ascii=True, indent=None, separators=(",", ":")) + "\n")


def compare(folder):
    golden = json.loads(GOLDEN.read_text())
    tokenizer = Tokenizer.from_file(str(Path(folder) / "tokenizer.json"))
    for case in golden["cases"]:
        assert tokenizer.encode(case["text"]).ids == case["ids"], case["text"]
        assert tokenizer.decode(case["ids"], skip_special_tokens=False) == case["decoded"], case["text"]
    print(f"{len(golden['cases'])} texts have equal ids in {folder} (tokenizers {tokenizers.__version__})")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        compare(sys.argv[1])
    else:
        make()
