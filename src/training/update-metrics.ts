/** Gathers what the updates of one step measured into metrics. */
import type { Datum } from "../algorithm/datum.ts";
import {
  maxLogprobDifference,
  type PolicyDiagnostics,
  policyDiagnostics,
  referenceKlDivergence,
} from "../algorithm/diagnostics.ts";
import type { KlTerm, Loss } from "../algorithm/loss.ts";
import type { Minibatch } from "../algorithm/minibatch.ts";
import type { LossReport } from "../engine/engine.ts";
import { assert, TrainingError } from "../errors.ts";
import type { MetricRow } from "../reporting/metric-row.ts";
import type { PolicyIdentity } from "../rollout/policy.ts";

/** Sampler and trainer may differ by rounding only; more means that something else was trained on than was sampled. */
const samplerTolerance = 1e-3;
/** Where rounded weights sample: divergence beyond which the ratios of the loss no longer correct for it, nats per token. */
const roundingLimit = 0.1;

interface UpdateSetting {
  readonly loss: Loss;
  readonly learningRate: number;
  readonly kl: KlTerm | undefined;
  /** Who sampled. */
  readonly policy: PolicyIdentity;
  /** Whether older weights than those of now sampled some of the data; the loss's ratios correct for it. */
  readonly isStale?: boolean | undefined;
}

export class UpdateMetrics {
  readonly #setting: UpdateSetting;
  readonly #sums = new Map<string, number>();
  #updates = 0;
  #tokens = 0;
  #trainedTokens = 0;
  #paddedTokens = 0;
  #sharedTokens = 0;
  #ratioMax = 1;
  #sampler: { readonly difference: number; readonly klDivergence: number } | undefined;

  #older: PolicyDiagnostics | undefined;

  constructor(setting: UpdateSetting) {
    this.#setting = setting;
  }

  /**
   * Asserts, before the first update, that the trainer computes what the sampler reported. A sampler with rounded weights
   * reports its own log-probabilities, which are the denominator of the loss's ratios; it may only not be too far
   * away. Throws `TrainingError` when it is. Where older weights sampled, the difference is measured and nothing asserted.
   */
  checkSampler(batch: Minibatch, report: LossReport): void {
    if (this.#sampler !== undefined || this.#older !== undefined) return;
    const { loss, policy, isStale } = this.#setting;
    if (isStale) {
      this.#older = policyDiagnostics(batch.data, report.logprobs, loss);
      return;
    }
    const difference = maxLogprobDifference(batch.data, report.logprobs);
    const { klDivergence } = policyDiagnostics(batch.data, report.logprobs, loss);
    const isNumber = Number.isFinite(report.loss);
    if (policy.weights === undefined) {
      assert(
        difference <= samplerTolerance || !isNumber,
        `log-probabilities at sampling and in training differ by ${difference}, more than ${samplerTolerance}`,
      );
    } else if (klDivergence > roundingLimit && isNumber) {
      throw new TrainingError(
        `sampling with ${policy.weights} weights diverges from the trained weights by ${klDivergence.toFixed(3)} nats per token, at most ${roundingLimit} can be corrected for; use more bits (engine.samplingWeights: ${policy.weights === "int4" ? "int8 or f32" : "f32"})`,
      );
    }
    this.#sampler = { difference, klDivergence };
  }

  add(batch: Minibatch, report: LossReport, gradientNorm: number): void {
    const { loss, kl } = this.#setting;
    const diagnostics = policyDiagnostics(batch.data, report.logprobs, loss);
    this.#updates++;
    this.#tokens += batch.tokens;
    this.#trainedTokens += batch.trainedTokens;
    this.#paddedTokens += report.paddedTokens;
    this.#sharedTokens += report.sharedTokens ?? 0;
    this.#ratioMax = Math.max(this.#ratioMax, diagnostics.ratioMax);
    this.#addMean("loss/value", report.loss);
    this.#addMean("gradient/norm", gradientNorm);
    this.#addMean("kl/sampling", diagnostics.klDivergence);
    this.#addMean("clip/fraction", diagnostics.clipFraction);
    this.#addMean("ratio/mean", diagnostics.ratioMean);
    this.#addMean("entropy/sampled", diagnostics.entropy);
    if (kl)
      this.#addMean(
        "kl/reference",
        referenceKlDivergence(batch.data as Datum[], report.logprobs, kl.estimator),
      );
  }

  /** The metrics of a step whose updates took `seconds`. */
  row(seconds: number): Partial<MetricRow> {
    const counts = {
      "optimizer/updates": this.#updates,
      "optimizer/learningRate": this.#setting.learningRate,
      "loss/tokens": this.#trainedTokens,
    };
    if (this.#updates === 0) return counts;
    const means = Object.fromEntries([...this.#sums].map(([key, sum]) => [key, sum / this.#updates]));
    return {
      ...counts,
      ...means,
      "ratio/max": this.#ratioMax,
      "rate/tokens": this.#tokens / seconds,
      "loss/padding": paddingShare(this.#tokens, this.#paddedTokens),
      "loss/shared": this.#sharedTokens / this.#tokens,
      ...(this.#older && {
        "staleness/klDivergence": this.#older.klDivergence,
        "staleness/ratioMean": this.#older.ratioMean,
        "staleness/ratioMax": this.#older.ratioMax,
      }),
      ...(this.#sampler && {
        "parity/maxLogprobDifference": this.#sampler.difference,
        "parity/klDivergence": this.#sampler.klDivergence,
      }),
    };
  }

  #addMean(key: string, value: number): void {
    this.#sums.set(key, (this.#sums.get(key) ?? 0) + value);
  }
}

/** The share of the computed tokens that was padding; data without any weight are not computed. */
export function paddingShare(tokens: number, paddedTokens: number): number {
  return paddedTokens === 0 ? 0 : Math.max(0, 1 - tokens / paddedTokens);
}
