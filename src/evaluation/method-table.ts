/**
 * The table of all methods on all sets: a score with n and interval, and whether each method is better or worse than the
 * one that the others are compared with, over questions and, where a method has several seeds, over seeds too. Many comparisons
 * are corrected together (Holm). A method that could not be
 * measured, or that was measured on other questions, is a row with its reason; a reference that could not be measured is
 * replaced by none.
 */
import { UsageError } from "../errors.ts";
import { differenceAcrossSeeds } from "./across-seeds.ts";
import type { Breakdown } from "./aggregate.ts";
import { contractDifferences, type EvaluationContract } from "./contract.ts";
import { holm } from "./holm.ts";
import { costMetrics, itemKey, type MetricName, type ScoredItem } from "./item.ts";
import { type DifferenceVerdict, type PairedDifference, pairedTest } from "./paired-test.ts";
import type { EvaluationResult } from "./result.ts";

export interface MeasuredMethod {
  readonly name: string;
  /** Absent where it could not be measured. */
  readonly result?: EvaluationResult;
  /** The runs of several seeds that `result` is the mean of (`across-seeds.ts`); absent: one. */
  readonly seeds?: readonly EvaluationResult[];
  /** Why not. */
  readonly failure?: string;
}

export interface TableCell extends PairedDifference {
  /** `p` after Holm's correction over all cells of the table; `verdict` goes by it. */
  readonly adjustedP: number;
}

export interface TableRow extends MeasuredMethod {
  /** By set; `all` is over all questions. A set that the method was not asked is absent. */
  readonly bySet: Readonly<Record<string, Breakdown>>;
  /** Unweighted mean of the metric over the sets, the average of published tables; absent where a set has no score. */
  readonly macro?: number;
  /** Difference from the reference, by set; absent for the reference itself and where nothing is in common. */
  readonly differences: Readonly<Record<string, TableCell>>;
  /** What must be equal for a difference to mean the method, and is not. */
  readonly unequal: readonly string[];
}

export interface MethodTable {
  /** What methods are scored and compared by. */
  readonly metric: MetricName;
  /** Name of the method that the others are compared with; undefined where none was measured. */
  readonly reference: string | undefined;
  /** The reference that was asked for and could not be measured. */
  readonly missingReference?: string;
  /** Names of the sets, sorted; behind several comes `all`. */
  readonly sets: readonly string[];
  readonly rows: readonly TableRow[];
}

export interface TableOptions {
  /** Drives intervals and tests. */
  readonly seed: number;
  /** Default: the first method that was measured. */
  readonly reference?: string | undefined;
  /** Default: exact match. */
  readonly metric?: MetricName | undefined;
}

const significance = 0.05;
/** What methods must have in common; prompt, codec, limits and k are what makes them methods. */
const commonKeys = /^(corpusHash|questionsHash|normaliser|judge|split|n|retriever\.(method|indexHash))$/;

/** Makes the table, rows in the order given. Throws `UsageError` for a reference that is none of the methods. */
export function methodTable(methods: readonly MeasuredMethod[], options: TableOptions): MethodTable {
  const { seed, reference, metric = "em" } = options;
  const base = referenceOf(methods, reference);
  const drafts = methods.map((method) => ({
    ...method,
    bySet: bySet(method.result),
    unequal: unequalKeys(base?.result?.contract, method.result?.contract, metric),
  }));
  const named = [...new Set(drafts.flatMap((draft) => Object.keys(draft.bySet)))].filter(
    (set) => set !== "all",
  );
  // All questions of one set are that set, and not another comparison.
  const sets = named.length === 1 ? named : [...named.sort(), "all"];
  const cells = drafts.flatMap((draft, row) => {
    if (base?.result === undefined || draft.result === undefined || draft.name === base.name) return [];
    if (draft.unequal.some((key) => key !== "n")) return [];
    const before = base.seeds ?? [base.result];
    const after = draft.seeds ?? [draft.result];
    return sets.flatMap((set) => {
      const difference = differenceOn({ set, metric }, { before, after, seed });
      return difference === undefined ? [] : [{ row, set, difference }];
    });
  });
  const adjusted = holm(cells.map(({ difference }) => difference.p));
  const rows = drafts.map((draft, row) => {
    const own = cells.flatMap((cell, i) =>
      cell.row === row
        ? [[cell.set, corrected(cell.difference, adjusted[i] as number, metric)] as const]
        : [],
    );
    return { ...draft, ...macroOf(draft.result, metric), differences: Object.fromEntries(own) };
  });
  const isMissing = reference !== undefined && base === undefined;
  return { metric, reference: base?.name, ...(isMissing && { missingReference: reference }), sets, rows };
}

function referenceOf(
  methods: readonly MeasuredMethod[],
  reference: string | undefined,
): MeasuredMethod | undefined {
  if (reference !== undefined && methods.every(({ name }) => name !== reference))
    throw new UsageError(
      `there is no method ${reference} to compare with; use one of ${methods.map(({ name }) => name).join(", ")}`,
    );
  const isMeasured = (result: EvaluationResult | undefined): boolean =>
    result !== undefined && result.summary.overall.n > 0;
  return methods.find(({ name, result }) => isMeasured(result) && name === (reference ?? name));
}

function bySet(result: EvaluationResult | undefined): Readonly<Record<string, Breakdown>> {
  return result === undefined ? {} : { ...result.summary.byDataset, all: result.summary.overall };
}

function macroOf(result: EvaluationResult | undefined, metric: MetricName): { readonly macro?: number } {
  const sets = Object.values(result?.summary.byDataset ?? {});
  const means = sets.flatMap((set) => set[metric]?.mean ?? []);
  return means.length === 0 || sets.some(({ n }) => n === 0)
    ? {}
    : { macro: means.reduce((sum, mean) => sum + mean, 0) / means.length };
}

function unequalKeys(
  a: EvaluationContract | undefined,
  b: EvaluationContract | undefined,
  metric: MetricName,
): string[] {
  if (a === undefined || b === undefined) return [];
  const common = contractDifferences(a, b)
    .map(({ key }) => key)
    .filter((key) => commonKeys.test(key));
  return metric === "score" && judgeOf(a) !== judgeOf(b) ? [...common, "judge"] : common;
}

/** Who judges: a planner's judge and one of answers alone are the same judge when they are the same model and rule. */
function judgeOf({ generator, answerJudge }: EvaluationContract): string {
  const { judge, judgeRule, judgePromptHash } = { ...generator, ...answerJudge };
  return JSON.stringify(judge === judgeRule ? [judge] : [judge, judgePromptHash]);
}

function differenceOn(
  { set, metric }: { readonly set: string; readonly metric: MetricName },
  sides: {
    readonly before: readonly EvaluationResult[];
    readonly after: readonly EvaluationResult[];
    readonly seed: number;
  },
): PairedDifference | undefined {
  const [[before, ...moreBefore], [after, ...moreAfter]] = [sides.before, sides.after];
  if (before === undefined || after === undefined) return undefined;
  const { seed } = sides;
  if (moreBefore.length + moreAfter.length > 0)
    return differenceAcrossSeeds(sides, { metric, seed, set: set === "all" ? undefined : set });
  const scores = scoresOf(before, set, metric);
  const pairs = [...scoresOf(after, set, metric)].flatMap(([key, value]) => {
    const other = scores.get(key);
    return other === undefined ? [] : [[other, value] as const];
  });
  return pairedTest(
    pairs.map(([a]) => a),
    pairs.map(([, b]) => b),
    { seed },
  );
}

function scoresOf({ items }: EvaluationResult, set: string, metric: MetricName): ReadonlyMap<string, number> {
  const scored = items.filter(
    (item): item is ScoredItem =>
      !item.failed && item[metric] !== undefined && (set === "all" || item.dataset === set),
  );
  return new Map(scored.map((item) => [itemKey(item), item[metric] as number]));
}

function corrected(difference: PairedDifference, adjustedP: number, metric: MetricName): TableCell {
  return { ...difference, adjustedP, verdict: verdictOf(difference.mean, adjustedP, metric) };
}

function verdictOf(difference: number, p: number, metric: MetricName): DifferenceVerdict {
  if (p >= significance) return "not distinguishable";
  return difference > 0 !== costMetrics.has(metric) ? "better" : "worse";
}
