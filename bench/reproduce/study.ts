/**
 * A study: what a paper claims, in miniature. Variants are a recipe with overrides, each trained with every seed; claims
 * compare two variants by a metric of their final evaluations, seed by seed and question by question.
 */
import type { MetricName } from "../../src/evaluation/item.ts";

export interface Variant {
  readonly name: string;
  /** Path from the root of the repository, such as `recipes/lab.yaml`. */
  readonly recipe: string;
  /**
   * Dotted overrides. `{checkpoint:NAME}` stands for the newest checkpoint of the prepared run NAME of the same seed, and
   * `{checkpoint:NAME@7}` for that of seed 7.
   */
  readonly overrides: readonly string[];
  /** True: the supervised stages alone, for warm starts and readers that are not reinforced. */
  readonly supervisedOnly?: boolean;
  /** True: the model of the recipe, which must exist, is evaluated as it is. */
  readonly isUntrained?: boolean;
}

/** What the second must be against the first for the claim to hold. */
export type Expectation =
  /** The interval of the difference lies above 0, or below it. */
  | { readonly type: "higher" }
  | { readonly type: "lower" }
  /** The interval of the difference does not reach below 0, or above it; where it does on both sides, nothing contradicts. */
  | { readonly type: "notLower" }
  | { readonly type: "notHigher" }
  /** The interval of the ratio of the means lies below `most`. */
  | { readonly type: "ratioAtMost"; readonly most: number }
  /** … lies above `least`. */
  | { readonly type: "ratioAtLeast"; readonly least: number }
  /** The second's share of the way from the first to the variant `ceiling`, as an interval, lies above `least`. */
  | { readonly type: "gapShareAtLeast"; readonly least: number; readonly ceiling: string }
  /** No direction is claimed; the difference is reported. */
  | { readonly type: "none" };

export interface Claim {
  /** What the paper says, in a sentence that names where. */
  readonly text: string;
  readonly variant: string;
  readonly baseline: string;
  readonly metric: MetricName;
  /** Of the baseline, where it is another one. */
  readonly baselineMetric?: MetricName;
  readonly expect: Expectation;
}

export interface Study {
  /** Of the command line and of `docs/reproductions/NAME.md`. */
  readonly name: string;
  readonly title: string;
  /** Runs that variants build upon, such as a frozen reader; trained once for each seed that asks for them. */
  readonly prepared?: readonly Variant[];
  readonly variants: readonly Variant[];
  readonly claims: readonly Claim[];
  /** Which variants are points of a Pareto front: more of `utility` for less of `cost`, by their means. */
  readonly front?: {
    readonly utility: MetricName;
    readonly cost: MetricName;
    readonly variants: readonly string[];
  };
  /** Columns of the table. */
  readonly metrics: readonly MetricName[];
  /** Overrides of every variant that make the study run in a minute, to try the command. Stages without a key are skipped. */
  readonly small: readonly string[];
}
