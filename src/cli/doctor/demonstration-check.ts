/** Examination of a warm-up: what its teacher can show at all. What does not fit or finds nothing is left out of every step. */
import { type Demonstrations, type DropReason, demonstrate, dropReasons } from "../../rollout/teacher.ts";
import { goldTitles } from "../../training/gold-titles.ts";
import { type Check, type Patient, spread } from "./check.ts";

const questionsAsked = 64;

/** What the teachers of all supervised stages show of some training questions; undefined without such a stage of the agent. */
export async function checkDemonstrations({ recipe, data, engine }: Patient): Promise<Check | undefined> {
  const lessons = recipe.stages.flatMap((stage) =>
    stage.type === "supervised" && stage.teacher.type !== "ranking"
      ? [{ stage: stage.name, teacher: stage.teacher }]
      : [],
  );
  if (lessons.length === 0) return undefined;
  const name = "demonstrations";
  const { retriever, train } = data;
  const { tokenizer, contextLength } = engine;
  const titles = goldTitles(data);
  const setting = { retriever, environment: recipe.environment, tokenizer, contextLength, titles };
  const parts: string[] = [];
  for (const { stage, teacher } of lessons) {
    const requests = spread(train, questionsAsked).map((question, index) => ({
      question,
      group: `${stage}/${index}`,
      sample: 0,
      seed: recipe.seed,
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
