/** Examination of a warm-up: what its teacher can show at all. What does not fit or finds nothing is left out of every step. */
import type { SupervisedStage } from "../../config/stage-options.ts";
import type { Ranker } from "../../rollout/ranked-search.ts";
import {
  type Demonstrations,
  type DropReason,
  demonstrate,
  dropReasons,
  type TeacherOptions,
} from "../../rollout/teacher.ts";
import { Closers } from "../../shared/closers.ts";
import { goldTitles } from "../../training/gold-titles.ts";
import type { Watcher } from "../../training/hub-settings.ts";
import { createRanker } from "../../training/open-ranker.ts";
import { exploringRanker } from "../../training/opened-ranker.ts";
import { type Check, costlyEpisodes, type Patient, spread } from "./check.ts";

const questionsAsked = 64;
const greedy = { temperature: 0, topP: 1, topK: 0 } as const;

interface Lesson {
  readonly stage: string;
  readonly teacher: TeacherOptions;
}

/**
 * What the teachers of all supervised stages show of some training questions, through the ranker that a training would
 * begin with; undefined without such a stage of the agent. Throws what opening a ranker throws, and the signal's reason.
 */
export async function checkDemonstrations(patient: Patient, watcher: Watcher): Promise<Check | undefined> {
  const lessons = patient.recipe.stages.flatMap((stage) =>
    stage.type === "supervised" ? lessonOf(stage) : [],
  );
  if (lessons.length === 0) return undefined;
  const closers = new Closers();
  try {
    const ranker = await openedRanker(patient, { watcher, closers });
    return await examine(lessons, patient, { ranker, signal: watcher.signal });
  } finally {
    await closers.close();
  }
}

/** The ranker's own lessons need none of the agent's turns. */
function lessonOf({ name, teacher }: SupervisedStage): Lesson[] {
  return teacher.type === "ranking" ? [] : [{ stage: name, teacher }];
}

/** Without its judge, which grades only what reinforcement samples. */
async function openedRanker(
  { recipe, data, engine }: Patient,
  world: { readonly watcher: Watcher; readonly closers: Closers },
): Promise<Ranker | undefined> {
  const { ranker } = recipe;
  const ungraded = ranker?.type === "generative" ? { ...ranker, judge: undefined } : ranker;
  const opened = await createRanker({ ...recipe, ranker: ungraded }, data, { ...world, agent: engine });
  return exploringRanker(opened, greedy);
}

async function examine(
  lessons: readonly Lesson[],
  { recipe, data, engine }: Patient,
  { ranker, signal }: { readonly ranker: Ranker | undefined; readonly signal: AbortSignal | undefined },
): Promise<Check> {
  const name = "demonstrations";
  const { retriever, train, passages } = data;
  const { tokenizer, contextLength } = engine;
  const { environment, seed } = recipe;
  const titles = goldTitles(data);
  const setting = { retriever, ranker, environment, tokenizer, contextLength, titles, signal };
  const isCostly = passages === undefined || ranker?.type === "generative";
  const questions = spread(train, isCostly ? costlyEpisodes : questionsAsked);
  const parts: string[] = [];
  for (const { stage, teacher } of lessons) {
    const requests = questions.map((question, index) => ({
      question,
      group: `${stage}/${index}`,
      sample: 0,
      seed,
    }));
    const { trajectories, dropped } = await demonstrate(requests, setting, teacher);
    const counts = dropReasons.flatMap((reason) => {
      const count = dropped.filter((one) => one.reason === reason).length;
      return count === 0 ? [] : `${reason} ${count}`;
    });
    const left = counts.length === 0 ? "" : ` (left out: ${counts.join(", ")})`;
    const detail = `the teacher of ${stage} shows ${trajectories.length} of ${requests.length} questions${left}`;
    if (trajectories.length === 0) return { name, ok: false, detail, fix: fixes[worst(dropped)] };
    parts.push(detail);
  }
  return { name, ok: true, detail: parts.join("; ") };
}

/** What the most of those that could be shown fail by; questions without gold passages are nobody's to show. */
function worst(dropped: Demonstrations["dropped"]): DropReason {
  const reasons = dropped.map(({ reason }) => reason).filter((reason) => reason !== "noGoldPassages");
  const counts = dropReasons.map(
    (reason) => [reasons.filter((one) => one === reason).length, reason] as const,
  );
  return reasons.length === 0
    ? "noGoldPassages"
    : counts.reduce((most, one) => (one[0] > most[0] ? one : most))[1];
}

const fixes: Readonly<Record<DropReason, string>> = {
  tooLong:
    "raise environment.maxTurnTokens or model.contextLength: a turn with its tags, or the episode, has more tokens than they allow",
  noGoldPassages: "give the training questions `supporting` passages, or use another teacher",
  goldNotFound:
    "raise environment.k, or mend retrieval: forager search with a question's own words shows what is found",
  answerNotShown:
    "raise environment.maxObservationTokens: the answer is cut off from the passages that hold it",
};
