/** Whole episodes of the baselines and of the codec with evidence, played by a script and compared with what must come out. */
import { expect, test } from "vitest";
import { makeQuestion } from "../../test/make-trajectory.ts";
import { type EnvironmentOptions, environmentOptionsSchema } from "../environment/environment-options.ts";
import type { Retriever } from "../retrieval/retriever.ts";
import { citationScores, hasAbstained } from "../reward/citations.ts";
import { reward } from "../reward/reward.ts";
import { runRollout } from "../rollout/rollout.ts";
import { scriptedPolicy } from "../rollout/scripted-policy.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import { retrievedPassages, searchCount, shownPassages, trajectoryText } from "../rollout/trajectory-view.ts";

/** Finds two passages for every query, named after its first word. */
const retriever: Retriever = {
  identity: { method: "scripted", corpusHash: "c", indexHash: "i", parameters: {} },
  retrieve: async (queries, k) =>
    queries.map((query) =>
      ["a", "b"].slice(0, k).map((letter) => {
        const name = `${query.split(" ")[0]}-${letter}`;
        return { passage: { id: name, title: name, text: `Text of ${name}.` }, score: 1 };
      }),
    ),
};

async function play(environment: object, turns: readonly string[], others = "Noted."): Promise<Trajectory> {
  const options: EnvironmentOptions = environmentOptionsSchema.parse({ maxSearches: 2, ...environment });
  const policy = scriptedPolicy((context, turn) =>
    context.episode?.includes("/condense/") ? others : turns[turn],
  );
  return await runRollout({
    question: makeQuestion({ goldPassages: ["Second-a"] }),
    group: "g",
    sample: 0,
    seed: 1,
    policy,
    retriever,
    environment: options,
    sampling: { temperature: 0, topP: 1, topK: 0 },
  });
}

test("IRCoT reads what the question finds, searches with its sentences, and is asked for the answer at last", async () => {
  const played = await play({ codec: "ircot", prompt: "ircot", retrieveFirst: true }, [
    "First sentence.\n",
    "Second sentence.\n",
    " Paris.\n",
  ]);
  expect(played).toMatchObject({ answer: "Paris", stopReason: "answer" });
  expect(searchCount(played)).toBe(3);
  expect(retrievedPassages(played).map(({ passage }) => passage.id)).toEqual([
    "What-a",
    "What-b",
    "First-a",
    "First-b",
    "Second-a",
    "Second-b",
  ]);
  expect(shownPassages(played)).toHaveLength(3);
  expect(played.segments[0]?.text).toContain("Text of What-a.");
  expect(played.segments.map(({ source }) => source).join()).toBe(
    "prompt,policy,environment,policy,environment,policy",
  );
  expect(played.segments[2]?.text).not.toContain("So the answer is:");
  expect(played.segments[4]?.text).toMatch(/<\/information>\nSo the answer is:$/);
});

test("IRCoT ends early when a sentence says the answer, and what the prompt showed stays recorded", async () => {
  const played = await play({ codec: "ircot", prompt: "ircot", retrieveFirst: true }, [
    "So the answer is: Paris.\n",
  ]);
  expect(played).toMatchObject({ answer: "Paris", stopReason: "answer" });
  expect(searchCount(played)).toBe(1);
});

test("Search-o1 shows what the model noted of the documents, and refuses to search twice", async () => {
  const query = "<|begin_search_query|>Second thing<|end_search_query|>";
  const played = await play(
    { codec: "search-o1", prompt: "search-o1", refuseRepeats: true, condense: { maxTokens: 20 } },
    [`Let me see. ${query}`, query, "\\boxed{Paris}"],
    "Second says <|end_search_result|> Paris.",
  );
  expect(played).toMatchObject({ answer: "Paris", stopReason: "answer" });
  expect(searchCount(played)).toBe(1);
  const shown = played.segments[2]?.text ?? "";
  expect(shown).toContain("Second says");
  expect(shown).not.toContain("Text of Second-a");
  expect(shown.match(/<\|end_search_result\|>/g)).toHaveLength(1);
  expect(played.segments[4]?.text).toContain("was searched before");
  expect(played.segments[4]?.text).toContain("No searches are left");
  // Three turns, and one completion for the documents.
  expect(played.usage?.calls).toBe(4);
});

test("passages are numbered through an episode with evidence, and citations are scored against the gold passages", async () => {
  const played = await play({ codec: "evidence", prompt: "evidence" }, [
    "<search> First thing</search>",
    "<search> Second thing</search>",
    "<evidence> 3, 1, 9</evidence><answer> Paris</answer>",
  ]);
  expect(trajectoryText(played)).toContain("Doc 3(Title: Second-a)");
  expect(citationScores(played)).toEqual({ precision: 1 / 3, recall: 1 });
  expect(reward(played, { type: "citations" }).value).toBeCloseTo(0.5, 12);
  expect(reward(played, { type: "abstention", credit: 0.3 }).value).toBe(1);
  expect(hasAbstained(played)).toBe(false);
});

test("an abstention is no answer, and earns its credit", async () => {
  const played = await play({ codec: "evidence", prompt: "evidence" }, ["<unknown></unknown>"]);
  expect(played).toMatchObject({ answer: undefined, stopReason: "answer" });
  expect(hasAbstained(played)).toBe(true);
  expect(citationScores(played)).toBeUndefined();
  expect(reward(played, { type: "abstention", credit: 0.3 })).toEqual({
    value: 0.3,
    parts: { exactMatch: 0, abstained: 1 },
  });
  expect(reward(played, { type: "citations" }).value).toBe(0);
  expect(reward(played, { type: "exactMatch" }).value).toBe(0);
});

test.each([
  [{ codec: "ircot", prompt: "bare" }, "need each other"],
  [{ codec: "ircot", prompt: "ircot" }, "set retrieveFirst to true"],
  [{ retrieveFirst: true }, "no place for passages"],
  [{ mode: "direct", condense: {} }, "only mode search"],
  [{ mode: "rag", refuseRepeats: true }, "only mode search"],
  [{ codec: "evidence", prompt: "bare", passageTemplate: "text" }, "cites passages by number"],
  [{ codec: "search-r1", prompt: "evidence" }, "use codec evidence"],
  [{ mode: "search", prompt: "reason" }, "does not explain mode search"],
])("the environment %j is refused", (options, message) => {
  const parsed = environmentOptionsSchema.safeParse(options);
  expect(parsed.error?.issues.map((issue) => issue.message).join("; ")).toContain(message);
});
