/** Gathers what the critic's updates of one step measured into metrics. */
import type { ValueDatum } from "../algorithm/datum.ts";
import type { ValueLoss } from "../algorithm/loss.ts";
import type { Minibatch } from "../algorithm/minibatch.ts";
import { valueClipFraction, valueDiagnostics } from "../algorithm/value-diagnostics.ts";
import type { ValueReport } from "../engine/engine.ts";
import type { MetricRow } from "../reporting/metric-row.ts";

export class CriticMetrics {
  readonly #data: readonly ValueDatum[];
  readonly #setting: { readonly loss: ValueLoss; readonly learningRate: number };
  #updates = 0;
  #loss = 0;
  #clipFraction = 0;
  #gradientNorm = 0;

  /** `data` are those of the whole step, with the values of before its updates. */
  constructor(
    data: readonly ValueDatum[],
    setting: { readonly loss: ValueLoss; readonly learningRate: number },
  ) {
    this.#data = data;
    this.#setting = setting;
  }

  add(batch: Minibatch<ValueDatum>, report: ValueReport, gradientNorm: number): void {
    this.#updates++;
    this.#loss += report.loss;
    this.#clipFraction += valueClipFraction(batch.data, report.values, this.#setting.loss);
    this.#gradientNorm += gradientNorm;
  }

  row(): Partial<MetricRow> {
    if (this.#updates === 0) return {};
    const { explainedVariance, valueMean, returnMean } = valueDiagnostics(this.#data);
    return {
      "critic/loss": this.#loss / this.#updates,
      "critic/explainedVariance": explainedVariance,
      "critic/clipFraction": this.#clipFraction / this.#updates,
      "critic/valueMean": valueMean,
      "critic/returnMean": returnMean,
      "critic/gradientNorm": this.#gradientNorm / this.#updates,
      "critic/learningRate": this.#setting.learningRate,
    };
  }
}
