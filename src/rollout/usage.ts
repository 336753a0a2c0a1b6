/** What the calls of a policy came to: tokens and money, of one completion or of many. */
import type { CompletionUsage } from "./policy.ts";

export interface PolicyUsage {
  /** Completions. */
  readonly calls: number;
  readonly promptTokens: number;
  /** Prompt tokens that were found in a cache; 0 where the policy does not say. */
  readonly cachedTokens: number;
  readonly completionTokens: number;
  /** Prompt and completion tokens of the last call. */
  readonly contextTokens: number;
  /** Absent where there is no price. */
  readonly dollars?: number;
}

export const noUsage: PolicyUsage = {
  calls: 0,
  promptTokens: 0,
  cachedTokens: 0,
  completionTokens: 0,
  contextTokens: 0,
};

/** The usage of one completion. */
export function usageOf({
  promptTokens,
  completionTokens,
  cachedTokens = 0,
  dollars,
}: CompletionUsage): PolicyUsage {
  return {
    calls: 1,
    promptTokens,
    cachedTokens,
    completionTokens,
    contextTokens: promptTokens + completionTokens,
    ...(dollars !== undefined && { dollars }),
  };
}

/** `a` and then `b`; without a price only where neither has one. */
export function addUsage(a: PolicyUsage, b: PolicyUsage): PolicyUsage {
  const isPriced = a.dollars !== undefined || b.dollars !== undefined;
  return {
    calls: a.calls + b.calls,
    promptTokens: a.promptTokens + b.promptTokens,
    cachedTokens: a.cachedTokens + b.cachedTokens,
    completionTokens: a.completionTokens + b.completionTokens,
    contextTokens: b.contextTokens,
    ...(isPriced && { dollars: (a.dollars ?? 0) + (b.dollars ?? 0) }),
  };
}
