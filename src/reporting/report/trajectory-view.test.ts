import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { makeRecord, makeTrajectory } from "../made-up.suite.ts";
import { evenSample, sampleTrajectories } from "./trajectory-sample.ts";
import { textSpans, tokenSpans, viewTrajectory } from "./trajectory-view.ts";

const answer = (start: number, end: number) => ({ start, end, kind: "answer" }) as const;
const passage = (start: number, end: number) => ({ start, end, kind: "passage" }) as const;

describe("spans", () => {
  it("are cut where marks begin and end, and marks may overlap", () => {
    expect(textSpans("abcdef", [passage(1, 5), answer(2, 3)])).toEqual([
      { text: "a" },
      { text: "b", gold: 2 },
      { text: "c", gold: 3 },
      { text: "de", gold: 2 },
      { text: "f" },
    ]);
    expect(textSpans("", [])).toEqual([]);
  });

  it("give back the text, whatever the marks", () => {
    const mark = fc.tuple(fc.nat(20), fc.nat(20)).map(([a, b]) => answer(Math.min(a, b), Math.max(a, b)));
    fc.assert(
      fc.property(fc.string({ minLength: 20, maxLength: 30 }), fc.array(mark), (text, marks) => {
        expect(
          textSpans(text, marks)
            .map((span) => span.text)
            .join(""),
        ).toBe(text);
      }),
    );
  });

  it("of tokens keep each token whole with its log-probability", () => {
    expect(tokenSpans(["Ri", "ver", " Aln", ""], [-1, -2, -3], [answer(0, 5)])).toEqual([
      { text: "Ri", logprob: -1, gold: 1 },
      { text: "ver", logprob: -2, gold: 1 },
      { text: " Aln", logprob: -3 },
      { text: "" },
    ]);
  });
});

describe("the view of a trajectory", () => {
  it("marks gold answers and passages outside the prompt and says what each search found", () => {
    const pieces = [[], ["<search>", " Ostburg </search>"], [], ["<answer> River Aln </answer>"]];
    const view = viewTrajectory("after", makeRecord({ pieces }));
    expect(view.searches).toBe(1);
    expect(view.segments[1]?.spans.map(({ logprob }) => logprob)).toEqual([-0.5, -0.25]);
    expect(view.segments[2]?.passages).toEqual([{ title: "Ostburg", score: 3.5, isGold: true }]);
    const marked = view.segments[2]?.spans.filter(({ gold }) => gold);
    expect(marked?.map(({ text }) => text).join("")).toBe(
      "Ostburg is a town on the River Aln, in the north.",
    );
    expect(marked?.find(({ text }) => text === "River Aln")?.gold).toBe(3);
  });

  it("shows characters that would hide or turn text", () => {
    const trajectory = makeTrajectory({ answer: "a\u202eb\u0000" });
    expect(viewTrajectory("after", makeRecord({ trajectory })).answer).toBe("a\\u202eb\\x00");
  });

  it("shows the text as it is when the tokens' texts are not known or do not fit", () => {
    for (const pieces of [undefined, [[], ["one piece for two tokens"], [], []]]) {
      const view = viewTrajectory("after", makeRecord(pieces && { pieces }));
      expect(view.segments[1]?.spans).toEqual([{ text: "<search> Ostburg </search>" }]);
    }
  });
});

describe("the sample of trajectories", () => {
  const records = (count: number) =>
    Array.from({ length: count }, (_, index) => {
      const { question, ...rest } = makeTrajectory();
      return makeRecord({ trajectory: { ...rest, question: { ...question, id: String(index) } } });
    });

  it("is everything when there is little", () => {
    const sample = sampleTrajectories([{ name: "grpo", records: records(3) }]);
    expect([sample.total, sample.trajectories.length]).toEqual([3, 3]);
  });

  it("is bounded, even, and holds both sides of a question", () => {
    const sample = sampleTrajectories([
      { name: "after", records: records(500) },
      { name: "before", records: records(500) },
      { name: "grpo", records: records(900) },
    ]);
    const { trajectories, total } = sample;
    expect(total).toBe(1900);
    expect(trajectories.length).toBe(200);
    const keys = (set: string) => trajectories.filter((item) => item.set === set).map(({ key }) => key);
    expect(keys("before")).toEqual(keys("after"));
    expect(keys("before")).toHaveLength(50);
    expect(keys("grpo")).toContain("lab/0");
  });

  it("is bounded in size too", () => {
    const { segments, ...rest } = makeTrajectory();
    const long = {
      ...rest,
      segments: [...segments, { source: "environment", text: "x".repeat(100_000), tokens: [] }],
    } as const;
    const sample = sampleTrajectories([
      { name: "grpo", records: Array.from({ length: 100 }, () => makeRecord({ trajectory: long })) },
    ]);
    expect(JSON.stringify(sample.trajectories).length).toBeLessThan(3_100_000);
    expect(sample.trajectories.length).toBeGreaterThan(20);
  });

  it("takes every element at most once, the first included", () => {
    expect(evenSample([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 4)).toEqual([0, 2, 5, 7]);
    expect(evenSample([1, 2], 4)).toEqual([1, 2]);
  });
});
