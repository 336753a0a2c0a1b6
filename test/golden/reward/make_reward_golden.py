"""Writes answers.json beside this file: SQuAD normalisation and scores as Python computes them.

The definitions follow the description in Rajpurkar et al. 2016 (lower case, no ASCII punctuation, no articles,
single spaces) with Python's own `str.lower`, `re` word boundaries and `str.split`.
"""
import json
import platform
import re
import string
import unicodedata
from collections import Counter
from pathlib import Path

ANSWERS = [
    "", " ", "The", "a an the", "A", "an apple", "The Cat", "theatre", "the-atre", "a.b.c", "U.S.A.", "U. S. A.", "Mr. O'Neil", "isn't",
    "the\u2019s", "the_cat", "_the_", "a_b", "the1", "1the", "the\u0301", "\u0301the", "thé", "a\u0308", "éa", "a é", "ªa", "a²", "²the", "Ⅷ the",
    "the ½", "½the", "the①", "①", "日本the", "the日本", "the 日本", "ΟΔΟΣ", "ΟΔΟΣ.", "ΣΑΣ", "Σ", "İstanbul", "IĞDIR", "ẞ", "STRASSE", "Straße", "ǅ", "K (Kelvin)", "Å",
    "x\u00a0y", "x\u2003y", "x\u3000y", "x\u200by", "x\u0085y", "x\u001cy", "x\u001dy", "x\u001ey", "x\u001fy", "x\ufeffy", "x\u2028y", "x\u180ey", "x\u205fy", "x\u202fy", "x\u1680y",
    "\u00a0the\u00a0cat\u00a0", "the\ufeffcat", "the\u200bcat", "\tthe\n cat\r\n", "x\u000by\u000cz", "“quoted”", "\"quoted\"", "«a»", "—the—", "the…", "$1,000.50", "1,000", "1 000", "50%", "C++", "C#", "a/b/the",
    "Beijing", " beijing ", "BEIJING!", "the the", "an an hour", "a-a-a", "and", "AND.", "no", "yes.", "😀 the 😀", "the😀", "नमस्ते", "a़", "ไทย the", "العربية", "the؟", "x¿y", "`~!@#$%^&*()-_=+[]{}|;:'\",.<>/?\\",
    "Nice Côte d'Azur Airport", "Nice Cote d Azur", "new york city", "New York", "York, New", "city of new york", "Λ", "ﬁ", "the\u00adcat", "\u00b7a\u00b7", "a\u0000the",
]


def words(answer):
    text = "".join(c for c in answer.lower() if c not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", text).split()


def normal(answer):
    return " ".join(words(answer))


def f1(prediction, gold):
    common = sum((Counter(words(prediction)) & Counter(words(gold))).values())
    if common == 0:
        return 0.0
    precision, recall = common / len(words(prediction)), common / len(words(gold))
    return 2 * precision * recall / (precision + recall)


pairs = [(p, g) for p in ANSWERS for g in ANSWERS if p is g or words(p) and set(words(p)) & set(words(g))]
golden = {
    "reference": f"Python {platform.python_version()}, Unicode {unicodedata.unidata_version}",
    "normal": [{"answer": answer, "normal": normal(answer)} for answer in ANSWERS],
    "pairs": [
        {"prediction": p, "gold": g, "exactMatch": int(normal(p) == normal(g)), "cover": int(normal(g) in normal(p)), "f1": f1(p, g)}
        for p, g in pairs
    ],
}
Path(__file__).with_name("answers.json").write_text(json.dumps(golden, ensure_ascii=True, indent=1) + "\n")
