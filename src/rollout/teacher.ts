/**
 * Demonstrations: rollouts of a scripted teacher in the real environment, for a supervised warm-up. A patient
 * teacher makes every search of the question's plan and gives the gold answer. An impatient one makes the first
 * search only and answers with the next name of the plan, which is what it has just read: it shows how to search,
 * read and copy, and leaves the second search to be found by reinforcement.
 */
import { z } from "zod";
import type { Question } from "../corpus/question.ts";
import { questionKey } from "../corpus/question.ts";
import type { Action } from "../environment/action.ts";
import { findCodec } from "../environment/codecs.ts";
import { ConfigError } from "../errors.ts";
import { random } from "../shared/random.ts";
import { episodeName, type RolloutRequest, type RolloutSetting } from "./rollout.ts";
import { type RunRolloutsOptions, runRollouts } from "./run-rollouts.ts";
import { scriptedPolicy } from "./scripted-policy.ts";
import type { Trajectory } from "./trajectory.ts";

export const teacherOptionsSchema = z.strictObject({
  patience: z
    .number()
    .min(0)
    .max(1)
    .default(0.15)
    .describe("Probability that the teacher makes all searches of a question that needs several, 0 to 1."),
});

export type TeacherOptions = z.infer<typeof teacherOptionsSchema>;

/**
 * One demonstration for each request, in order. Throws `ConfigError` when a question has no plan or needs more searches than
 * the environment allows.
 */
export async function demonstrate(
  requests: readonly RolloutRequest[],
  setting: Omit<RolloutSetting, "policy" | "sampling">,
  { patience, ...options }: TeacherOptions & RunRolloutsOptions,
): Promise<Trajectory[]> {
  const codec = findCodec(setting.environment.codec);
  const turnsOf = new Map(
    requests.map((request) => {
      const { question, group, sample, seed } = request;
      const isPatient = random(seed, "teacher", group, sample).next() < patience;
      const actions = teacherActions(question, isPatient);
      checkBudget(question, actions.length - 1, setting.environment.maxSearches);
      return [episodeName(request), actions.map(codec.render)];
    }),
  );
  const policy = scriptedPolicy(
    (context, turn) => turnsOf.get(context.episode as string)?.[turn],
    setting.tokenizer,
  );
  const sampling = { temperature: 0, topP: 1, topK: 0 };
  return runRollouts(requests, { ...setting, policy, sampling }, options);
}

/** What a teacher does for a question: searches, then one answer. Throws `ConfigError` when the question has no plan. */
export function teacherActions(
  question: Question,
  isPatient: boolean,
): readonly Exclude<Action, { type: "invalid" }>[] {
  const { plan = [], goldAnswers } = question;
  const [first, second] = plan;
  if (first === undefined)
    throw new ConfigError(
      `question ${questionKey(question)} has no plan to demonstrate; use questions of a built-in world`,
    );
  if (!isPatient && second !== undefined)
    return [
      { type: "search", query: first },
      { type: "answer", answer: second },
    ];
  return [
    ...plan.map((query) => ({ type: "search", query }) as const),
    { type: "answer", answer: goldAnswers[0] as string },
  ];
}

function checkBudget(question: Question, searches: number, maxSearches: number): void {
  if (searches > maxSearches)
    throw new ConfigError(
      `question ${questionKey(question)} needs ${searches} searches, environment.maxSearches is ${maxSearches}; raise it`,
      { path: "environment.maxSearches" },
    );
}
