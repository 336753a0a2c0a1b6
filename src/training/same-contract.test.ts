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

  it("says beside a refusal that the program is another, which may be the cause", () => {
    const retriever = { ...kept.retriever, indexHash: b };
    const resume = (now: object) => () => requireSameContract(kept, { ...kept, retriever, ...now }, "runs/a");
    expect(resume({})).toThrow(/, or train anew into another folder$/);
    expect(resume({ codeVersion: "0.2.0", node: "v22.0.0" })).toThrow(
      /began with something else: retriever\.indexHash was a+… and is b+…\. .* into another folder\. It also began with codeVersion 0\.1\.0, now 0\.2\.0, node v20\.20\.2, now v22\.0\.0: another version of Forager may be the cause, and the one that it began with then goes on$/,
    );
    expect(resume({ node: "v22.0.0" })).toThrow(
      /It also began with node v20\.20\.2, now v22\.0\.0: another version of Node\.js may be/,
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

describe("models that are not trained", () => {
  const retriever = (reranker: string, indexHash: string) => ({
    retriever: { ...kept.retriever, indexHash, parameters: { k1: 1.2, reranker } },
  });

  it("a reranker may lie elsewhere, known by its hash in that of the index", () => {
    const before = { ...kept, ...retriever("/a/reranker", a) };
    expect(
      requireSameContract(before, { ...kept, ...retriever("/b/reranker", a) }, "runs/a"),
    ).toBeUndefined();
    expect(() => requireSameContract(before, { ...kept, ...retriever("/b/reranker", b) }, "runs/a")).toThrow(
      "retriever.indexHash was",
    );
  });

  const generator = (model: string, judge: string) => ({ generator: { type: "embedded", model, judge } });
  const judge = (model: string) => ({ answerJudge: { judge: model, judgeRule: "exactMatch" } });
  const served = (model: string, at: string) => judge(`openai chat ${model} at ${at}`);

  it.each([
    ["generator.model /a/m, now /b/m", generator("/a/m", "exactMatch"), generator("/b/m", "exactMatch")],
    [
      "generator.judge embedded /a/j, now embedded /b/j",
      generator("/a/m", "embedded /a/j"),
      generator("/a/m", "embedded /b/j"),
    ],
    ["answerJudge.judge embedded /a/j, now embedded /b/j", judge("embedded /a/j"), judge("embedded /b/j")],
    [
      "answerJudge.judge openai chat m at http://a, now openai chat m at http://b",
      served("m", "http://a"),
      served("m", "http://b"),
    ],
  ])("one without a hash may lie elsewhere, which is said: %s", (said, before, now) => {
    expect(requireSameContract({ ...kept, ...before }, { ...kept, ...now }, "runs/a")).toBe(
      `this run began with ${said}: its numbers may differ from those that it would have had, and no hash tells whether a model that lies elsewhere is the same`,
    );
  });

  it.each([
    ["generator.model", generator("smollm2-135m", "exactMatch"), generator("hf:a/b", "exactMatch")],
    ["generator.judge", generator("/a/m", "exactMatch"), generator("/a/m", "embedded /a/j")],
    ["answerJudge.judge", served("m", "http://a"), served("n", "http://a")],
    ["answerJudge.judge", judge("embedded /a/j"), served("m", "http://a")],
  ])("%s may not be another one", (key, before, now) => {
    expect(() => requireSameContract({ ...kept, ...before }, { ...kept, ...now }, "runs/a")).toThrow(
      `began with something else: ${key} was `,
    );
  });
});
