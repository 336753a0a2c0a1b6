/**
 * What web search may cost: calls and dollars, counted before a call is sent, so that calls in flight never go over
 * it together. A call that the provider refused is given back; one whose reply was lost stays counted, since nobody
 * knows whether it was billed.
 */
import { RetrieverError } from "../../errors.ts";
import type { HttpPolicy } from "../remote/http.ts";

export interface Budget {
  readonly maxCalls?: number | undefined;
  readonly maxDollars?: number | undefined;
}

export interface Spending {
  readonly calls: number;
  readonly dollars: number;
}

/** Thrown instead of a call that the budget does not allow; nothing was sent for it. */
export class BudgetSpentError extends RetrieverError {
  readonly spent: Spending;
  constructor(message: string, spent: Spending) {
    super(message);
    this.spent = spent;
  }
}

/** Whether an error, or a cause of it, is that the search budget is spent: a run should end, not retry. */
export function isBudgetSpent(error: unknown): boolean {
  for (let inner = error; inner instanceof Error; inner = inner.cause)
    if (inner instanceof BudgetSpentError) return true;
  return false;
}

export interface Meter {
  spent(): Spending;
  /** Counts `calls` at `price` dollars each; throws `BudgetSpentError`, and counts nothing, when that is too much. */
  reserve(calls: number, price: number): void;
  /** Takes back calls that were not made. */
  release(calls: number, price: number): void;
}

export function createMeter({ maxCalls, maxDollars }: Budget): Meter {
  let calls = 0;
  // Millionths of a dollar, so that sums of prices do not drift.
  let micros = 0;
  const spent = (): Spending => ({ calls, dollars: micros / 1e6 });
  return {
    spent,
    reserve: (more, price) => {
      const cost = more * Math.round(price * 1e6);
      const over =
        maxCalls !== undefined && calls + more > maxCalls
          ? `${maxCalls} calls`
          : maxDollars !== undefined && micros + cost > Math.round(maxDollars * 1e6)
            ? `$${maxDollars}`
            : undefined;
      if (over !== undefined)
        throw new BudgetSpentError(
          `the search budget of ${over} is spent: ${calls} calls for $${micros / 1e6} were made, ` +
            `${more} more at $${price} each would exceed it; raise the budget to go on`,
          spent(),
        );
      calls += more;
      micros += cost;
    },
    release: (fewer, price) => {
      calls -= fewer;
      micros -= fewer * Math.round(price * 1e6);
    },
  };
}

/** What one call that is reserved is known to cost, by the fate of its attempts. */
export interface Charge {
  /** To be part of the policy under which the call is made. */
  readonly hooks: Pick<HttpPolicy, "onSend" | "onLost" | "onUnserved">;
  /** For a call that failed: takes back what was surely not billed. */
  giveBack(): void;
}

/** Follows a call for which `calls` at `price` dollars are reserved already. Each attempt that is lost is one more. */
export function chargeOf(meter: Meter, calls: number, price: number): Charge {
  // An attempt that is on its way, also when it is aborted, or that was served.
  let mayBeBilled = false;
  return {
    hooks: {
      onSend: () => {
        mayBeBilled = true;
      },
      onLost: () => {
        meter.reserve(calls, price);
        mayBeBilled = false;
      },
      onUnserved: () => {
        mayBeBilled = false;
      },
    },
    giveBack: () => {
      if (!mayBeBilled) meter.release(calls, price);
    },
  };
}
