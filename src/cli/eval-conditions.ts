/** Parts of `forager eval` that change what is retrieved: loss decomposition, and RAG with as many passages as an agent saw. */
import type { Passage } from "../corpus/passage.ts";
import type { Question } from "../corpus/question.ts";
import { FileError, UsageError } from "../errors.ts";
import {
  type Decomposition,
  decompose,
  type RetrievalCondition,
  underCondition,
} from "../evaluation/decompose.ts";
import type { EvaluateInput } from "../evaluation/evaluate.ts";
import type { EvaluationResult } from "../evaluation/result.ts";
import type { PassageStore } from "../retrieval/passage-store.ts";
import type { Retriever } from "../retrieval/retriever.ts";
import { writeFileAtomic } from "../shared/files.ts";
import { allPassages } from "../training/setup.ts";
import type { CommandIo } from "./command.ts";
import type { ModelSource } from "./open-model.ts";
import { readResult } from "./stored-result.ts";

interface Searched {
  readonly questions: readonly Question[];
  readonly retriever: Retriever;
  readonly passages?: PassageStore | undefined;
}

/** What `evaluate` needs to ask under a condition. */
export function changedRetrieval(
  condition: RetrievalCondition,
  { questions, retriever, passages: store }: Searched,
): Pick<EvaluateInput, "retrieverFor" | "condition"> {
  const wanted = new Set(questions.flatMap(({ goldPassages }) => goldPassages));
  const passages = new Map<string, Passage>();
  if (condition === "oracle" && store !== undefined && wanted.size > 0)
    for (const passage of allPassages(store)) if (wanted.has(passage.id)) passages.set(passage.id, passage);
  return {
    condition,
    retrieverFor: (question) => underCondition(retriever, condition, { question, passages }),
  };
}

/** Splits the loss, and keeps the two other results beside the one at `path`. Throws `UsageError` without common questions. */
export async function decomposed(
  results: Readonly<Record<RetrievalCondition, EvaluationResult>>,
  path: string | undefined,
): Promise<Decomposition> {
  if (path !== undefined)
    for (const condition of ["none", "oracle"] as const)
      await writeFileAtomic(
        `${path.replace(/\.json$/, "")}.${condition}.json`,
        `${JSON.stringify(results[condition], null, 2)}\n`,
      );
  const parts = decompose(results, { seed: results.real.contract.seed });
  if (parts === undefined)
    throw new UsageError(
      "no question was scored with all three kinds of retrieval; see what failed in the results",
    );
  return parts;
}

/** The decomposition for people. */
export function decompositionText({ n, em, gained, notFound, notUsed }: Decomposition): string {
  const show = ({ mean, ci }: { readonly mean: number; readonly ci: readonly [number, number] }): string =>
    `${mean.toFixed(3)} [${ci[0].toFixed(3)}, ${ci[1].toFixed(3)}]`;
  return [
    `exact match, n = ${n}: no retrieval ${show(em.none)}, real ${show(em.real)}, oracle ${show(em.oracle)}`,
    `gained by searching  ${show(gained)}, p = ${gained.p.toPrecision(2)}`,
    `could not be found   ${show(notFound)}, p = ${notFound.p.toPrecision(2)}`,
    `could not be used    ${show(notUsed)}`,
  ].join("\n");
}

/** The model with a recipe of mode rag whose k is the mean number of passages that the agent of a result saw. */
export async function withPassagesOf(source: ModelSource, path: string, io: CommandIo): Promise<ModelSource> {
  const { recipe } = source;
  const { mode, k: before, maxObservationTokens } = recipe.environment;
  if (mode !== "rag")
    throw new UsageError(
      `--k-from gives RAG as many passages as an agent saw; the mode is ${mode}, add --set environment.mode=rag`,
    );
  const seen = (await readResult(path)).summary.overall.passagesSeen?.mean;
  if (seen === undefined)
    throw new FileError(`${path} does not say how many passages were seen; evaluate its agent again`);
  const k = Math.max(1, Math.round(seen));
  const tokens = Math.ceil((maxObservationTokens * Math.max(k, before)) / before);
  io.note(
    `k is ${k}: the agent of ${path} saw ${seen.toFixed(2)} different passages a question; they may take ${tokens} tokens`,
  );
  return {
    ...source,
    recipe: { ...recipe, environment: { ...recipe.environment, k, maxObservationTokens: tokens } },
  };
}
