/** From a run folder to `report.html`. Reads nothing else, so that a report can be made of any run, also while it goes on. */
import { basename } from "node:path";
import { questionKey } from "../../corpus/question.ts";
import { itemKey, type ScoredItem } from "../../evaluation/item.ts";
import { writeFileAtomic } from "../../shared/files.ts";
import type { RunFolder, StoredEvaluation } from "../run-folder.ts";
import { readStop } from "../stop-record.ts";
import type { TrajectoryRecord } from "../trajectory-record.ts";
import { renderDocument } from "./document.ts";
import { sampleTrajectories, type TrajectorySet } from "./trajectory-sample.ts";

/** Writes the report of a run and returns its path. Throws `DataFormatError` for a damaged file, `FileError`. */
export async function writeReport(run: RunFolder): Promise<string> {
  const evaluations = await run.readEvaluations();
  const sets: TrajectorySet[] = [];
  for (const name of await run.trajectoryNames())
    sets.push({
      name,
      records: withScores(
        await run.readTrajectories(name),
        evaluations.find((one) => one.name === name),
      ),
    });
  const html = renderDocument({
    name: basename(run.path),
    recipeYaml: await run.readRecipe(),
    contract: await run.readContract(),
    rows: await run.readMetrics(),
    stop: await readStop(run.path),
    evaluations,
    sample: sampleTrajectories(sets),
  });
  await writeFileAtomic(run.reportPath, html);
  return run.reportPath;
}

/** Trajectories of an evaluation carry the scores of their items, unless they have their own. */
function withScores(
  records: readonly TrajectoryRecord[],
  evaluation: StoredEvaluation | undefined,
): readonly TrajectoryRecord[] {
  if (!evaluation) return records;
  const items = evaluation.result.items.filter((item): item is ScoredItem => !item.failed);
  const scores = new Map(items.map((item) => [itemKey(item), { em: item.em, f1: item.f1 }]));
  return records.map((record) => {
    const found = scores.get(questionKey(record.trajectory.question));
    return record.scores || !found ? record : { ...record, scores: found };
  });
}
