import { describe, expect, it } from "vitest";
import { findMarks } from "./gold-marks.ts";

const found = (text: string, answers: readonly string[], passages: readonly string[] = []): string[] =>
  findMarks(text, answers, passages).map(({ start, end, kind }) => `${kind}: ${text.slice(start, end)}`);

describe("gold marks", () => {
  it("find an answer wherever it stands as whole words, whatever its case", () => {
    expect(found("Rome, ROME and Romeo; in rome.", ["Rome"])).toEqual([
      "answer: Rome",
      "answer: ROME",
      "answer: rome",
    ]);
  });

  it("take an answer literally and ignore an empty one", () => {
    expect(found("C++ (1985)", ["C++", "(1985)", " ", "."])).toEqual(["answer: C++", "answer: (1985)"]);
  });

  it("find a passage up to where the observation cut it", () => {
    const passage = "Ostburg is a town on the River Aln, in the north.";
    expect(found(`x ${passage.slice(0, 30)}</information>`, [], [passage])).toEqual([
      `passage: ${passage.slice(0, 30)}`,
    ]);
    expect(found("Ostburg is another text", [], [passage])).toEqual([]);
  });

  it("find a short passage only as a whole", () => {
    expect(found("a tiny text here", [], ["tiny text"])).toEqual(["passage: tiny text"]);
    expect(found("a tiny", [], ["tiny text"])).toEqual([]);
  });
});
