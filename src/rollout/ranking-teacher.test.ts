import { describe, expect, it } from "vitest";
import type { Question } from "../corpus/question.ts";
import { rankingTags } from "../environment/ranking-codec.ts";
import { rankingPromptSchema } from "../environment/ranking-prompt.ts";
import { scriptedRetriever } from "../retrieval/scripted-retriever.ts";
import { trainBytePair } from "../tokenizer/byte-pair-training.ts";
import { demonstrateRankings } from "./ranking-teacher.ts";

const tokenizer = trainBytePair([], { vocabularySize: 270, specialTokens: rankingTags });
const found = ["a", "b", "gold", "d"].map((id) => ({ id, title: id, text: `text of ${id}` }));
const question: Question = {
  id: "1",
  dataset: "t",
  text: "who",
  goldAnswers: ["x"],
  goldPassages: ["gold"],
  plan: ["name"],
};
const show = (asked: Partial<Question> = {}, contextLength = 500, { randomShare = 0, n = 1 } = {}) => {
  const retriever = scriptedRetriever(() => found);
  const shown = demonstrateRankings(
    Array.from({ length: n }, (_, sample) => ({
      question: { ...question, ...asked },
      group: "g",
      sample,
      seed: 1,
    })),
    {
      retriever,
      k: 2,
      randomShare,
      ranker: {
        type: "generative",
        candidates: 4,
        tokenizer,
        contextLength,
        prompt: rankingPromptSchema.parse({ prompt: "bare", passages: "text" }),
        maxTokens: 40,
        sampling: { temperature: 0, topP: 1, topK: 0 },
      },
    },
  );
  return shown.then((demonstrations) => ({ ...demonstrations, queries: retriever.queries }));
};

describe("the teacher of rankers", () => {
  it("puts gold passages first and leaves the others in their order", async () => {
    const { trajectories, dropped, queries } = await show();
    expect(dropped).toEqual([]);
    expect(queries).toEqual(["name"]);
    const [shown] = trajectories;
    expect(shown?.segments.map(({ source }) => source)).toEqual(["prompt", "policy"]);
    expect(shown?.segments[0]?.text).toContain("Query: name\n[1] text of a\n");
    expect(shown?.segments[1]?.text).toBe("<reason></reason><rerank>[3] > [1]</rerank>");
    expect(tokenizer.decode(shown?.segments[1]?.tokens ?? [])).toBe(shown?.segments[1]?.text);
  });

  it("asks with the question where there is no plan", async () => {
    expect((await show({ plan: [] })).queries).toEqual(["who"]);
  });

  it("ranks a share of them at random, each candidate as often in each place", async () => {
    const firstOf = async (randomShare: number): Promise<readonly number[]> => {
      const { trajectories } = await show({}, 500, { randomShare, n: 400 });
      const firsts = trajectories.map(({ answer = "" }) => Number(answer[1]));
      return [1, 2, 3, 4].map((number) => firsts.filter((first) => first === number).length);
    };
    expect(await firstOf(0)).toEqual([0, 0, 400, 0]);
    // Four standard deviations around 100 of 400, and around 25 and 325.
    for (const count of await firstOf(1)) expect(Math.abs(count - 100)).toBeLessThan(35);
    const [one, , three] = await firstOf(0.25);
    expect(Math.abs((one as number) - 25)).toBeLessThan(20);
    expect(Math.abs((three as number) - 325)).toBeLessThan(32);
  });

  it.each([
    ["no gold passages are known", { goldPassages: [] }, 500, "noGoldPassages"],
    ["none is found", { goldPassages: ["elsewhere"] }, 500, "goldNotFound"],
    ["it does not fit", {}, 55, "tooLong"],
  ])("drops a question where %s", async (_, asked, contextLength, reason) => {
    const { trajectories, dropped } = await show(asked, contextLength);
    expect(trajectories).toEqual([]);
    expect(dropped.map((each) => each.reason)).toEqual([reason]);
  });
});
