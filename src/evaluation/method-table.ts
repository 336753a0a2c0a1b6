/**
 * The table of all methods on all sets: exact match with n and interval, its cost, and whether each method is better or
 * worse than the first one that was measured. Many comparisons are corrected together (Holm). A method that could not be
 * measured, or that was measured on other questions, is a row with its reason.
 */
import type { Breakdown } from "./aggregate.ts";
import { contractDifferences, type EvaluationContract } from "./contract.ts";
import { holm } from "./holm.ts";
import { itemKey, type ScoredItem } from "./item.ts";
import { type DifferenceVerdict, type PairedDifference, pairedTest } from "./paired-test.ts";
import type { EvaluationResult } from "./result.ts";

export interface MeasuredMethod {
  readonly name: string;
  /** Absent where it could not be measured. */
  readonly result?: EvaluationResult;
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
  /** Difference of exact match from the reference, by set; absent for the reference itself and where nothing is in common. */
  readonly differences: Readonly<Record<string, TableCell>>;
  /** What must be equal for a difference to mean the method, and is not. */
  readonly unequal: readonly string[];
}

export interface MethodTable {
  /** Name of the method that the others are compared with; undefined where none was measured. */
  readonly reference: string | undefined;
  /** Names of the sets, sorted; `all` comes last. */
  readonly sets: readonly string[];
  readonly rows: readonly TableRow[];
}

const significance = 0.05;
/** What methods must have in common; prompt, codec, limits and k are what makes them methods. */
const commonKeys = /^(corpusHash|questionsHash|normaliser|judge|split|n|retriever\.(method|indexHash))$/;

/** Makes the table, rows in the order given. `seed` drives intervals and tests. */
export function methodTable(
  methods: readonly MeasuredMethod[],
  { seed, reference }: { readonly seed: number; readonly reference?: string | undefined },
): MethodTable {
  const base =
    methods.find(({ name, result }) => name === reference && result !== undefined) ??
    methods.find(({ result }) => result !== undefined);
  const drafts = methods.map((method) => ({
    ...method,
    bySet: bySet(method.result),
    unequal: unequalKeys(base?.result?.contract, method.result?.contract),
  }));
  const cells = drafts.flatMap((draft, row) => {
    if (base?.result === undefined || draft.result === undefined || draft.name === base.name) return [];
    if (draft.unequal.some((key) => key !== "n")) return [];
    const [before, after] = [base.result, draft.result];
    return Object.keys(draft.bySet).flatMap((set) => {
      const difference = differenceOn(set, { before, after, seed });
      return difference === undefined ? [] : [{ row, set, difference }];
    });
  });
  const adjusted = holm(cells.map(({ difference }) => difference.p));
  const rows = drafts.map((draft, row) => {
    const own = cells.flatMap((cell, i) =>
      cell.row === row ? [[cell.set, corrected(cell.difference, adjusted[i] as number)] as const] : [],
    );
    return { ...draft, differences: Object.fromEntries(own) };
  });
  const sets = [...new Set(drafts.flatMap((draft) => Object.keys(draft.bySet)))].filter(
    (set) => set !== "all",
  );
  return { reference: base?.name, sets: [...sets.sort(), "all"], rows };
}

function bySet(result: EvaluationResult | undefined): Readonly<Record<string, Breakdown>> {
  return result === undefined ? {} : { ...result.summary.byDataset, all: result.summary.overall };
}

function unequalKeys(a: EvaluationContract | undefined, b: EvaluationContract | undefined): string[] {
  if (a === undefined || b === undefined) return [];
  return contractDifferences(a, b)
    .map(({ key }) => key)
    .filter((key) => commonKeys.test(key));
}

function differenceOn(
  set: string,
  {
    before,
    after,
    seed,
  }: { readonly before: EvaluationResult; readonly after: EvaluationResult; readonly seed: number },
): PairedDifference | undefined {
  const scores = scoresOf(before, set);
  const pairs = [...scoresOf(after, set)].flatMap(([key, value]) => {
    const other = scores.get(key);
    return other === undefined ? [] : [[other, value] as const];
  });
  return pairedTest(
    pairs.map(([a]) => a),
    pairs.map(([, b]) => b),
    { seed },
  );
}

function scoresOf({ items }: EvaluationResult, set: string): ReadonlyMap<string, number> {
  const scored = items.filter(
    (item): item is ScoredItem => !item.failed && (set === "all" || item.dataset === set),
  );
  return new Map(scored.map((item) => [itemKey(item), item.em]));
}

function corrected(difference: PairedDifference, adjustedP: number): TableCell {
  return { ...difference, adjustedP, verdict: verdictOf(difference.mean, adjustedP) };
}

function verdictOf(difference: number, p: number): DifferenceVerdict {
  if (p >= significance) return "not distinguishable";
  return difference > 0 ? "better" : "worse";
}
