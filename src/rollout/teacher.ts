/**
 * Demonstrations: rollouts of a scripted teacher in the real environment, for a supervised warm-up.
 *
 * `plan` follows the plan of a built-in world's question. Patient, it makes every search and gives the gold answer;
 * impatient, it makes the first search only and answers with the next name of the plan, which is what it has just read:
 * it shows how to search, read and copy, and leaves the second search to be found by reinforcement. It may have bad
 * habits (`habits.ts`), for reinforcement to remove.
 *
 * `goldPassages` serves real questions: it searches until all gold passages are found (`gold-plan.ts`) and then gives the
 * gold answer. What cannot be shown honestly is dropped with a reason: passages that no query finds, an answer that does
 * not stand in what was shown, an episode that does not fit.
 *
 * In the modes without searches both give the gold answer at once.
 */
import { z } from "zod";
import { type Question, questionKey } from "../corpus/question.ts";
import type { Action, Codec } from "../environment/action.ts";
import { findCodec } from "../environment/codecs.ts";
import type { EnvironmentOptions } from "../environment/environment-options.ts";
import { observationFormat, renderObservation } from "../environment/observation.ts";
import { ConfigError, RetrieverError } from "../errors.ts";
import type { ScoredPassage } from "../retrieval/retriever.ts";
import { defaultType } from "../shared/default-type.ts";
import { random } from "../shared/random.ts";
import { findGoldPlan, type NoPlan } from "./gold-plan.ts";
import { habitsSchema, turnsWithHabits } from "./habits.ts";
import { mentions } from "./mentions.ts";
import { episodeName, type RolloutRequest, type RolloutSetting } from "./rollout.ts";
import { runRollouts } from "./run-rollouts.ts";
import { scriptedPolicy } from "./scripted-policy.ts";
import { thoughtsFor } from "./thoughts.ts";
import type { Trajectory } from "./trajectory.ts";
import { hasGoldRetrieved, invalidTurnCount } from "./trajectory-view.ts";

export const teacherOptionsSchema = z.discriminatedUnion("type", [
  z.strictObject({
    type: defaultType("plan").describe("Follows the plan that questions of built-in worlds have."),
    patience: z
      .number()
      .min(0)
      .max(1)
      .default(0.15)
      .describe("Probability that the teacher makes all searches of a question that needs several, 0 to 1."),
    redundancy: z
      .number()
      .min(0)
      .lt(1)
      .default(0)
      .describe(
        "Mode planner: probability of a needless second sub-query in a round, and after the plan of one more needless round, and so on; something for reinforcement to unlearn.",
      ),
    habits: habitsSchema
      .optional()
      .describe(
        "Mode search: bad habits that are shown, for a warm start that has them as models that were not taught by a script do (docs/algorithms/desa.md); absent: none.",
      ),
  }),
  z.strictObject({
    type: z
      .literal("goldPassages")
      .describe("Searches until the gold passages of a question are found, then gives its gold answer."),
    thoughts: z
      .boolean()
      .default(true)
      .describe("Whether a short thought in <think> comes before each turn."),
  }),
]);

export type TeacherOptions = z.infer<typeof teacherOptionsSchema>;

/** Why a question has no demonstration. */
export const dropReasons = ["noGoldPassages", "goldNotFound", "answerNotShown", "tooLong"] as const;
export type DropReason = (typeof dropReasons)[number];

export interface Demonstrations {
  /** In the order of the requests. */
  readonly trajectories: readonly Trajectory[];
  readonly dropped: readonly { readonly request: RolloutRequest; readonly reason: DropReason }[];
}

export interface TeacherSetting extends Omit<RolloutSetting, "policy" | "sampling"> {
  /** Titles of gold passages by id, for `goldPassages`. */
  readonly titles?: ReadonlyMap<string, string> | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * A demonstration for each request that can be served. Throws `ConfigError` when a question has no plan or needs more
 * searches than the environment allows, `RetrieverError` when a search fails, and the signal's reason.
 */
export async function demonstrate(
  requests: readonly RolloutRequest[],
  setting: TeacherSetting,
  teacher: TeacherOptions,
): Promise<Demonstrations> {
  const { tokenizer, signal } = setting;
  const scripts = await Promise.all(requests.map((request) => scriptOf(request, setting, teacher)));
  const dropped: { request: RolloutRequest; reason: DropReason }[] = [];
  for (const [index, request] of requests.entries()) {
    const reason = scripts[index];
    if (typeof reason === "string") dropped.push({ request, reason });
  }
  const served = requests.filter((_, index) => typeof scripts[index] !== "string");
  const turnsOf = new Map(requests.map((request, index) => [episodeName(request), scripts[index]]));
  const policy = scriptedPolicy(
    (context, turn) => (turnsOf.get(context.episode as string) as readonly string[])[turn],
    tokenizer,
  );
  const sampling = { temperature: 0, topP: 1, topK: 0 };
  const played = await runRollouts(served, { ...setting, policy, sampling }, { signal });
  const trajectories: Trajectory[] = [];
  for (const [index, trajectory] of played.entries()) {
    const reason = judge(trajectory, { setting, teacher });
    if (reason === undefined) trajectories.push(trajectory);
    else dropped.push({ request: served[index] as RolloutRequest, reason });
  }
  return { trajectories, dropped };
}

/** The texts of a teacher's turns, or why it has none. */
async function scriptOf(
  request: RolloutRequest,
  setting: TeacherSetting,
  teacher: TeacherOptions,
): Promise<readonly string[] | NoPlan> {
  const { question, group, sample, seed } = request;
  const { mode, maxSearches, k, codec: name } = setting.environment;
  const codec = findCodec(name);
  if (mode === "planner") return planScript(request, setting.environment, teacher);
  if (mode !== "search") return [codec.render(goldAnswer(question))];
  const chance = random(seed, "teacher", group, sample);
  if (teacher.type === "plan") {
    const actions = teacherActions(question, chance.next() < teacher.patience);
    checkBudget(question, actions.length - 1, maxSearches);
    const { habits } = teacher;
    if (habits === undefined) return actions.map(codec.render);
    return turnsWithHabits(actions, habits, { codec, question, maxSearches, chance });
  }
  const { retriever, titles = new Map(), signal } = setting;
  const format = observationFormat(setting.environment, setting.tokenizer);
  const show = (found: readonly ScoredPassage[]): string => renderObservation(found, "", format).text;
  const plan = await findGoldPlan(question, { retriever, titles, k, maxSearches, show, signal });
  if (typeof plan === "string") return plan;
  const actions = [...plan.map(({ query }) => ({ type: "search", query }) as const), goldAnswer(question)];
  const thoughts = teacher.thoughts ? thoughtsFor(question, plan, chance) : [];
  return actions.map((action, turn) => turnText(codec, thoughts[turn], action));
}

/**
 * What a teacher of planners does: the searches of the plan, or when it is impatient the first alone, then it hands over.
 * Needless sub-queries are the last word of a query, needless rounds repeat the last one.
 */
function planScript(
  { question, group, sample, seed }: RolloutRequest,
  { codec: name, maxSearches }: EnvironmentOptions,
  teacher: TeacherOptions,
): readonly string[] {
  if (teacher.type !== "plan")
    throw new ConfigError(
      "mode planner is demonstrated by the plans of built-in worlds; use teacher.type plan",
    );
  const codec = findCodec(name);
  const chance = random(seed, "teacher", group, sample);
  const actions = teacherActions(question, chance.next() < teacher.patience);
  const asked = actions.flatMap((action) => (action.type === "search" ? [action.query] : []));
  checkBudget(question, asked.length, maxSearches);
  while (asked.length < maxSearches && chance.next() < teacher.redundancy) asked.push(asked.at(-1) as string);
  const rounds = asked.map((query) => {
    const word = query.split(" ").at(-1) as string;
    const isDoubled = chance.next() < teacher.redundancy && word !== query;
    return { type: "searches", queries: isDoubled ? [query, word] : [query] } as const;
  });
  // After the last round that is allowed the generator is called without being asked.
  const ending = rounds.length < maxSearches ? [{ type: "callGenerator" } as const] : [];
  return [...rounds, ...ending].map(codec.render);
}

function turnText(codec: Codec, thought: string | undefined, action: ActionOfTeacher): string {
  return (thought === undefined ? "" : codec.renderThought(thought)) + codec.render(action);
}

type ActionOfTeacher = Exclude<Action, { type: "invalid" }>;

/** What a teacher of worlds does for a question: searches, then one answer. Throws `ConfigError` when the question has no plan. */
export function teacherActions(question: Question, isPatient: boolean): readonly ActionOfTeacher[] {
  const { plan = [] } = question;
  const [first, second] = plan;
  if (first === undefined)
    throw new ConfigError(
      `question ${questionKey(question)} has no plan to demonstrate; use questions of a built-in world, or stages.NAME.teacher.type goldPassages`,
    );
  if (!isPatient && second !== undefined)
    return [
      { type: "search", query: first },
      { type: "answer", answer: second },
    ];
  return [...plan.map((query) => ({ type: "search", query }) as const), goldAnswer(question)];
}

function goldAnswer({ goldAnswers }: Question): ActionOfTeacher {
  return { type: "answer", answer: goldAnswers[0] as string };
}

function checkBudget(question: Question, searches: number, maxSearches: number): void {
  if (searches > maxSearches)
    throw new ConfigError(
      `question ${questionKey(question)} needs ${searches} searches, environment.maxSearches is ${maxSearches}; raise it`,
      { path: "environment.maxSearches" },
    );
}

/** Why a demonstration that was played must not be shown; undefined for a good one. Throws `RetrieverError`. */
function judge(
  trajectory: Trajectory,
  { setting, teacher }: { readonly setting: TeacherSetting; readonly teacher: TeacherOptions },
): DropReason | undefined {
  const { stopReason, failure, question } = trajectory;
  const isSearched = /^(search|planner)$/.test(setting.environment.mode);
  setting.signal?.throwIfAborted();
  if (stopReason === "retrieverFailure")
    throw new RetrieverError(`the demonstration of ${questionKey(question)} failed: ${failure}`);
  // After a turn that was cut, which is no action any more, the script runs out.
  if (stopReason === "policyFailure") return "tooLong";
  if (isSearched && teacher.type === "plan") return undefined;
  if (stopReason !== "answer" || invalidTurnCount(trajectory) > 0) return "tooLong";
  if (!isSearched) return undefined;
  if (!hasGoldRetrieved(trajectory)) return "goldNotFound";
  return isAnswerShown(trajectory) ? undefined : "answerNotShown";
}

/** Whether a gold answer stands in what the environment showed; yes and no stand nowhere and are concluded. */
function isAnswerShown({ question, segments }: Trajectory): boolean {
  const shown = segments.flatMap(({ source, text }) => (source === "environment" ? [text] : [])).join("\n");
  return question.goldAnswers.some((answer) => /^(yes|no)$/i.test(answer.trim()) || mentions(shown, answer));
}
