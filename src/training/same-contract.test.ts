import { describe, expect, it, test } from "vitest";
import { ConfigError } from "../errors.ts";
import { requireSameContract } from "./same-contract.ts";

const a = "a".repeat(64);
const b = "b".repeat(64);
const kept = {
  retriever: { method: "bm25", corpusHash: a, indexHash: a, parameters: { k1: 1.2 } },
  trainQuestions: { n: 9, hash: a },
  model: { type: "fresh" },
  tokenizerHash: a,
  seed: 3,
  codeVersion: "0.1.0",
  node: "v20.20.2",
};

describe("a run that is resumed", () => {
  it("may be over what it began with, whatever else a newer contract says", () => {
    expect(requireSameContract(kept, structuredClone(kept), "runs/a")).toBeUndefined();
    const newer = {
      ...kept,
      retriever: { ...kept.retriever, parameters: { k1: 1.2, folding: "none" } },
      mode: "search",
    };
    expect(requireSameContract(kept, newer, "runs/a")).toBeUndefined();
    expect(requireSameContract(newer, kept, "runs/a")).toBeUndefined();
  });

  it.each([
    ["retriever.indexHash", { retriever: { ...kept.retriever, indexHash: b } }],
    ["retriever.corpusHash", { retriever: { ...kept.retriever, corpusHash: b } }],
    ["retriever.parameters.k1", { retriever: { ...kept.retriever, parameters: { k1: 0.9 } } }],
    ["trainQuestions.hash", { trainQuestions: { n: 9, hash: b } }],
    ["tokenizerHash", { tokenizerHash: b }],
    ["seed", { seed: 4 }],
  ])("may not be over another %s", (key, change) => {
    const resume = () => requireSameContract(kept, { ...kept, ...change }, "runs/a");
    expect(resume).toThrow(ConfigError);
    expect(resume).toThrow(`runs/a began with something else: ${key} was `);
    expect(resume).toThrow("Put back what it began with, or train anew into another folder");
  });

  it("is told of another program, which may round otherwise", () => {
    expect(requireSameContract(kept, { ...kept, node: "v22.0.0" }, "runs/a")).toBe(
      "this run began with node v20.20.2, now v22.0.0: its numbers may differ from those that it would have had",
    );
  });
});

test("servers and models may lie elsewhere, where what they say of themselves is the same", () => {
  const remote = (url: string, hashes: object) => ({
    retriever: { ...kept.retriever, ...hashes, parameters: { url, "stated.name": url } },
    engine: { type: "tinker", url, probe: { ok: true } },
    model: { type: "pretrained", source: url, hash: a },
  });
  const unstated = remote("http://a", { corpusHash: "unstated:1", indexHash: a });
  expect(
    requireSameContract(unstated, remote("http://b", { corpusHash: "unstated:2", indexHash: b }), "r"),
  ).toBeUndefined();
  expect(
    requireSameContract(remote("http://a", {}), remote("http://b", { indexHash: b }), "r"),
  ).toBeUndefined();
  expect(() =>
    requireSameContract(remote("http://a", {}), remote("http://b", { corpusHash: b }), "r"),
  ).toThrow("retriever.corpusHash was aaaaaaaaaaaa… and is bbbbbbbbbbbb…");
  expect(() =>
    requireSameContract(remote("http://a", {}), remote("http://a", { indexHash: b }), "r"),
  ).toThrow("retriever.indexHash");
});
