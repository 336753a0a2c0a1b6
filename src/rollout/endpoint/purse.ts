/**
 * Reservations of a budget for calls whose cost is only known afterwards. Each call reserves the most it could cost; one
 * that does not fit waits as long as others are under way that may give some of theirs back.
 */
import { type Amount, isBudgetSpent, type Meter } from "../../shared/budget.ts";
import { untilAborted } from "../../shared/concurrency.ts";

export interface Purse {
  /** Waits for its turn; throws `BudgetSpentError` when nothing under way could make room, or the signal's reason. */
  reserve(most: Amount, signal: AbortSignal): Promise<void>;
  /** To be called once for each reservation, when its call has ended and was settled. */
  close(): void;
}

export function createPurse(meter: Meter): Purse {
  let open = 0;
  const waiting = new Set<() => void>();
  return {
    reserve: async (most, signal) => {
      for (;;) {
        try {
          meter.reserve(most);
          open++;
          return;
        } catch (error) {
          if (open === 0 || !isBudgetSpent(error)) throw error;
        }
        await untilAborted(new Promise<void>((resolve) => waiting.add(resolve)), signal);
      }
    },
    close: () => {
      open--;
      for (const wake of waiting) wake();
      waiting.clear();
    },
  };
}
