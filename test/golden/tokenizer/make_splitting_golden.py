"""
Writes what the Rust library `tokenizers` makes of texts in single steps before the model.

    python make_splitting_golden.py [OUTPUT_FOLDER]      (needs tokenizers)

splitting.json holds for each step of a tokenizer.json, as the library writes it, the pieces of every text; for a
normaliser, the one text that comes of it.
"""

import json
import sys
from pathlib import Path

import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers

BEHAVIORS = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]
STEPS = [
    *(pre_tokenizers.Split(Regex(r"\s+|[.,]|\d{1,2}"), b, invert=i) for b in BEHAVIORS for i in (False, True)),
    *(pre_tokenizers.Split(".", b) for b in BEHAVIORS),
    *(pre_tokenizers.Punctuation(b) for b in BEHAVIORS),
    pre_tokenizers.Whitespace(),
    pre_tokenizers.WhitespaceSplit(),
    pre_tokenizers.BertPreTokenizer(),
    pre_tokenizers.CharDelimiterSplit("-"),
    pre_tokenizers.FixedLength(3),
    pre_tokenizers.Digits(individual_digits=False),
    pre_tokenizers.Digits(individual_digits=True),
    pre_tokenizers.ByteLevel(add_prefix_space=True),
    pre_tokenizers.ByteLevel(add_prefix_space=False),
    normalizers.Strip(),
    normalizers.Strip(left=True, right=False),
    normalizers.Strip(left=False, right=True),
]
TEXTS = [
    "Hello, world!", "it's  12345 a..b  c.", "--a--b-c- -", "((x)) $1,234.56 (50%) ^~`|<=>", "àé_日本 ½ ²x n\u0303",
    "😀👍🏽 x ab", " \u00a0\u2003x\u3000\u200b y\t\n", "\u0085x\u0085 y\ufeff z\u0085", "\ufeffx\ufeff", "", ".", "a\r\n\r\nb", "«x» “y” … 。、",
]  # fmt: skip

steps = []
for step in STEPS:
    if isinstance(step, normalizers.Normalizer):
        results = [[step.normalize_str(text)] for text in TEXTS]
    else:
        results = [[piece for piece, _ in step.pre_tokenize_str(text)] for text in TEXTS]
    steps.append({"step": json.loads(step.__getstate__()), "pieces": results})
golden = {"reference": f"tokenizers {tokenizers.__version__}", "texts": TEXTS, "steps": steps}
output = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
(output / "splitting.json").write_text(json.dumps(golden, separators=(",", ":")) + "\n")
print(f"wrote {len(steps)} steps")
