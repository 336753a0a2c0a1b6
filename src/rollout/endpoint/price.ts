/** What a call costs by a price list of dollars for a million tokens; prompt tokens from a cache have their own price. */
import type { CompletionUsage } from "../policy.ts";
import type { Price } from "./endpoint-options.ts";

/** Dollars for `usage`; undefined without a price. Cached tokens are part of the prompt tokens. */
export function dollarsFor(
  { promptTokens, completionTokens, cachedTokens = 0 }: Omit<CompletionUsage, "dollars">,
  price: Price | undefined,
): number | undefined {
  if (price === undefined) return undefined;
  const fresh = (promptTokens - cachedTokens) * price.input;
  const cached = cachedTokens * (price.cached ?? price.input);
  return (fresh + cached + completionTokens * price.output) / 1e6;
}
