/**
 * What calls to services may cost: calls, tokens and dollars, counted before a call is sent, so that calls in flight
 * never go over the budget together. A call that the service refused is given back; one whose reply was lost stays
 * counted, since nobody knows whether it was billed.
 */
import { type ErrorCode, ForagerError } from "../errors.ts";
import type { HttpPolicy } from "./http.ts";

export interface Budget {
  readonly maxCalls?: number | undefined;
  readonly maxTokens?: number | undefined;
  readonly maxDollars?: number | undefined;
}

/** What something costs or has cost. */
export interface Amount {
  readonly calls: number;
  readonly tokens: number;
  readonly dollars: number;
}

export type Spending = Amount;

/** Thrown instead of a call that the budget does not allow; nothing was sent for it. */
export class BudgetSpentError extends ForagerError {
  readonly spent: Spending;
  constructor(code: ErrorCode, message: string, spent: Spending) {
    super(code, message);
    this.spent = spent;
  }
}

/** The error, or the cause of it, that says that a budget is spent. */
export function budgetSpent(error: unknown): BudgetSpentError | undefined {
  for (let inner = error; inner instanceof Error; inner = inner.cause)
    if (inner instanceof BudgetSpentError) return inner;
  return undefined;
}

/** Whether an error, or a cause of it, is that a budget is spent: a run should end, not retry. */
export function isBudgetSpent(error: unknown): boolean {
  return budgetSpent(error) !== undefined;
}

export interface Meter {
  spent(): Spending;
  /** Counts `amount`; throws `BudgetSpentError`, and counts nothing, when that is too much. */
  reserve(amount: Amount): void;
  /** Takes back what was not spent. */
  release(amount: Amount): void;
  /** Replaces a reserved amount by what it came to, also where that is more. */
  settle(reserved: Amount, actual: Amount): void;
}

export interface MeterName {
  /** What the budget is called in its error. */
  readonly name: string;
  /** Code of that error. */
  readonly code: ErrorCode;
}

/** Parts of a dollar that are counted, so that sums of prices of single tokens do not drift. */
const PARTS = 1e12;

export function createMeter({ maxCalls, maxTokens, maxDollars }: Budget, { name, code }: MeterName): Meter {
  let calls = 0;
  let tokens = 0;
  let parts = 0;
  const spent = (): Spending => ({ calls, tokens, dollars: parts / PARTS });
  const add = (amount: Amount, sign: 1 | -1): void => {
    calls += sign * amount.calls;
    tokens += sign * amount.tokens;
    parts += sign * Math.round(amount.dollars * PARTS);
  };
  const over = (more: Amount): string | undefined => {
    if (maxCalls !== undefined && calls + more.calls > maxCalls) return `${maxCalls} calls`;
    if (maxTokens !== undefined && tokens + more.tokens > maxTokens) return `${maxTokens} tokens`;
    const isTooDear =
      maxDollars !== undefined && parts + Math.round(more.dollars * PARTS) > Math.round(maxDollars * PARTS);
    return isTooDear ? `$${maxDollars}` : undefined;
  };
  return {
    spent,
    reserve: (more) => {
      const limit = over(more);
      if (limit !== undefined)
        throw new BudgetSpentError(
          code,
          `the ${name} of ${limit} is spent: ${describe(spent())} were made, ${describe(more)} more might exceed it; raise the budget to go on`,
          spent(),
        );
      add(more, 1);
    },
    release: (fewer) => add(fewer, -1),
    settle: (reserved, actual) => {
      add(reserved, -1);
      add(actual, 1);
    },
  };
}

function describe({ calls, tokens, dollars }: Amount): string {
  const withTokens = tokens === 0 ? "" : ` with ${tokens} tokens`;
  return `${calls} call${calls === 1 ? "" : "s"}${withTokens} for $${Number(dollars.toFixed(6))}`;
}

/** What one call that is reserved is known to cost, by the fate of its attempts. */
export interface Charge {
  /** To be part of the policy under which the call is made. */
  readonly hooks: Pick<HttpPolicy, "onSend" | "onLost" | "onUnserved">;
  /** For a call that failed: takes back what was surely not billed. */
  giveBack(): void;
}

/** Follows a call for which `amount` is reserved already. Each attempt that is lost is one more. */
export function chargeOf(meter: Meter, amount: Amount): Charge {
  // An attempt that is on its way, also when it is aborted, or that was served.
  let mayBeBilled = false;
  return {
    hooks: {
      onSend: () => {
        mayBeBilled = true;
      },
      onLost: () => {
        meter.reserve(amount);
        mayBeBilled = false;
      },
      onUnserved: () => {
        mayBeBilled = false;
      },
    },
    giveBack: () => {
      if (!mayBeBilled) meter.release(amount);
    },
  };
}
