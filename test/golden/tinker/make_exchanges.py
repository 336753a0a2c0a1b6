"""Makes exchanges.json: what the real SkyRL server (0.3.0, JAX on CPU, a random Qwen3 of 3.4 M parameters) answered to the
official client (0.24.1) and to plain HTTP, made small.

usage: python make_exchanges.py FOLDER   with recordings as `*.json`, each {"exchanges": [{"request", "response"}, …]}

Of every kind of answer the first is kept, and whatever made an id that a kept one names; a call and the poll that brought
its outcome go together. Lists in answers are cut to two entries, the base model is called `base`.
"""

import glob
import json
import os
import re
import sys

IDS = re.compile(r"(?:session|model|sampling)_[0-9a-f]{8}")


def shape(value):
    if isinstance(value, dict):
        return {key: shape(entry) for key, entry in sorted(value.items())}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__


def cut(value):
    if isinstance(value, dict):
        return {key: cut(entry) for key, entry in value.items() if key != "input"}
    return [cut(entry) for entry in value[:2]] if isinstance(value, list) else value


def small(exchange):
    request, response = exchange["request"], exchange["response"]
    return {
        "method": request["method"],
        "path": request["path"].removeprefix("/api/v1/"),
        "body": request["body"],
        "status": response["status"],
        "answer": cut(response["body"]),
    }


def units(exchanges):
    """Calls with the poll that brought their outcome."""
    polls = {}
    for exchange in exchanges:
        if exchange["path"] == "retrieve_future" and exchange["status"] != 408:
            polls.setdefault(str(exchange["body"]["request_id"]), exchange)
    for exchange in exchanges:
        if exchange["path"] == "retrieve_future":
            if exchange["status"] in (404, 422):
                yield [exchange]
            continue
        answer = exchange["answer"]
        poll = polls.get(answer.get("request_id")) if isinstance(answer, dict) else None
        yield [exchange] if poll is None else [exchange, poll]


def main(folder):
    exchanges = []
    for path in sorted(glob.glob(os.path.join(folder, "[01]*.json"))):
        recorded = json.load(open(path))["exchanges"]
        exchanges += [small(e) for e in recorded if not e.get("injected") and e["request"]["path"].startswith("/api/v1/")]
    everything = list(units(exchanges))
    makers, kept, seen = {}, set(), set()
    for index, unit in enumerate(everything):
        text = json.dumps(unit)
        for name in IDS.findall(text):
            makers.setdefault(name, index)
        for path in re.findall(r"tinker://[\w/-]+", json.dumps([e["answer"] for e in unit])):
            makers.setdefault(path, index)
        key = json.dumps([[re.sub(IDS, "ID", e["path"]), e["status"], shape(e["answer"])] for e in unit])
        if unit[0]["status"] >= 400 or any(e["status"] >= 400 for e in unit):
            key += json.dumps([e["answer"] for e in unit])
        if key in seen:
            continue
        seen.add(key)
        needed = [index]
        while needed:
            one = needed.pop()
            if one in kept:
                continue
            kept.add(one)
            text = json.dumps(everything[one])
            needed += [makers[name] for name in {*IDS.findall(text), *re.findall(r"tinker://[\w/-]+", text)} if name in makers]
    out = [exchange for index in sorted(kept) for exchange in everything[index]]
    made = {
        "note": "Answers of SkyRL 0.3.0 (JAX, CPU) to tinker 0.24.1 and plain HTTP, made small by make_exchanges.py",
        "exchanges": out,
    }
    text = json.dumps(made).replace("tiny-qwen3", "base")
    lines = json.loads(text)
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "exchanges.json"), "w") as file:
        file.write('{\n"note": ' + json.dumps(lines["note"]) + ',\n"exchanges": [\n')
        file.write(",\n".join(json.dumps(e) for e in lines["exchanges"]))
        file.write("\n]\n}\n")


main(sys.argv[1])
