/**
 * A language model as the judge of a ranking, the ablation of CoSearch (arXiv 2604.17555, table 3) in which a rubric from 0
 * to 3 takes the place of the composite reward: the judge reads question, gold answers, query, the passages that were shown
 * and what the agent wrote next. The reward is the mean of several samples, divided by 3. The words of the prompt are ours.
 */
import { neutralizer } from "../environment/neutralize.ts";
import { prepareQuestion } from "../environment/prompt.ts";
import { chosenPassages } from "../rollout/ranked-search.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import { sha256 } from "../shared/hash.ts";
import { behindThoughts } from "./judge-reply.ts";

const rubricText = [
  "A search agent works on a question. It sent a query, a ranker chose which passages it saw, and the agent went on. Grade the choice from 0 to 3 and write the number alone.",
  "0: nothing that helps. 1: on the subject, but of no use for the answer. 2: a part of what is needed, or all of it behind passages that do not help. 3: what is needed, first.",
  "Question: {question}",
  "Reference answers: {gold}",
  "Query: {query}",
  "Passages shown:\n{passages}",
  "What the agent wrote next:\n{next}",
  "Grade:",
].join("\n");

/** SHA-256 of the prompt, for contracts. */
export const rankingJudgeHash: string = sha256(rubricText);

/** The prompt about one valid ranking of `agent`'s episode; undefined for one that breaks the grammar. */
export function rankingJudgePrompt(
  ranking: Trajectory,
  agent: Trajectory,
  reserved: readonly string[],
): string | undefined {
  const chosen = chosenPassages(ranking);
  if (chosen === undefined || ranking.ranking === undefined) return undefined;
  const safe = neutralizer(reserved);
  const turns = agent.segments.filter(({ source }) => source === "policy");
  const values: Readonly<Record<string, string>> = {
    question: prepareQuestion(agent.question.text),
    gold: agent.question.goldAnswers.join(" | "),
    query: ranking.ranking.query,
    passages: chosen.map(({ passage }, i) => `[${i + 1}] ${passage.title}: ${passage.text}`).join("\n"),
    next: turns[ranking.ranking.turn + 1]?.text.trim() ?? "",
  };
  return safe(rubricText.replace(/\{(\w+)\}/g, (_, key: string) => values[key] as string));
}

/** The first number behind all reasoning, if it is a whole one from 0 to 3. */
export function readRubric(reply: string): number | undefined {
  const number = /-?\d+(?:[.,]\d+)?/.exec(behindThoughts(reply))?.[0];
  return number !== undefined && /^[0-3]$/.test(number) ? Number(number) : undefined;
}
