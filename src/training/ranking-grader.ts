/** Lets a language model grade rankings, for the reward `combine: judge` (`reward/ranking-judge.ts`). */
import { isInfrastructureFailure } from "../environment/stop-reason.ts";
import { PolicyError } from "../errors.ts";
import { rankingJudgePrompt, readRubric } from "../reward/ranking-judge.ts";
import { completeOnce, type Generator, inChat } from "../rollout/generator.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import { isBudgetSpent } from "../shared/budget.ts";
import { runTogether } from "../shared/concurrency.ts";
import { random } from "../shared/random.ts";

export interface RankingGrader {
  readonly model: Generator;
  /** Gradings of one ranking, whose mean counts. */
  readonly samples: number;
  readonly seed: number;
}

/** Rankings that are graded at once; policies gather their calls into batches. */
const concurrency = 64;

/**
 * The agents with grades, 0 to 1, on their valid rankings. A grade that cannot be read counts as 0; a ranking whose judge
 * could not be asked has none, and is not learnt from. Throws the signal's reason, and when a budget is spent.
 */
export async function gradeRankings(
  agents: readonly Trajectory[],
  grader: RankingGrader,
  signal?: AbortSignal,
): Promise<Trajectory[]> {
  const tasks = agents.flatMap((agent) =>
    isInfrastructureFailure(agent.stopReason)
      ? []
      : (agent.rankings ?? []).map(
          (ranking) => async (group: AbortSignal) =>
            [ranking, await gradeOf(ranking, agent, grader, group)] as const,
        ),
  );
  const grades = new Map(await runTogether(tasks, { concurrency, signal }));
  return agents.map((agent) =>
    agent.rankings === undefined
      ? agent
      : { ...agent, rankings: agent.rankings.map((ranking) => withGrade(ranking, grades.get(ranking))) },
  );
}

function withGrade(ranking: Trajectory, grade: number | undefined): Trajectory {
  return grade === undefined || ranking.ranking === undefined
    ? ranking
    : { ...ranking, ranking: { ...ranking.ranking, grade } };
}

async function gradeOf(
  ranking: Trajectory,
  agent: Trajectory,
  { model, samples, seed }: RankingGrader,
  signal: AbortSignal,
): Promise<number | undefined> {
  const text = rankingJudgePrompt(ranking, agent, model.tokenizer?.specialTokens ?? []);
  if (text === undefined) return undefined;
  const prompt = await inChat(model, text);
  const { group, sample } = ranking;
  const place = ranking.ranking?.place ?? 0;
  let sum = 0;
  try {
    for (let i = 0; i < samples; i++) {
      const drawn = random(seed, "ranking judge", group, sample, place, i).below(2 ** 31);
      const reply = await completeOnce(model, { prompt, seed: drawn, stop: [], signal });
      sum += (readRubric(reply?.text ?? "") ?? 0) / 3;
    }
  } catch (error) {
    if (!(error instanceof PolicyError) || isBudgetSpent(error) || signal.aborted) throw error;
    return undefined;
  }
  return sum / samples;
}
