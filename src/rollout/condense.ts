/**
 * Lets the policy of an episode condense what its searches find: a completion of its own for each search, through the
 * model's chat template where the episode uses one. Reasoning that does not fit is left out from its beginning.
 */
import {
  type Condense,
  condensePrompt,
  type FoundDocuments,
  nothingFound,
} from "../environment/condense-prompt.ts";
import type { EnvironmentOptions } from "../environment/environment-options.ts";
import { chatText, openingTokens } from "../environment/opening.ts";
import { PolicyError } from "../errors.ts";
import { random } from "../shared/random.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import type { CompletionUsage, Policy, SamplingOptions } from "./policy.ts";

export interface CondenseSetting {
  readonly policy: Policy;
  readonly tokenizer?: Tokenizer | undefined;
  readonly contextLength?: number | undefined;
  readonly environment: EnvironmentOptions;
  readonly sampling: Pick<SamplingOptions, "temperature" | "topP" | "topK">;
  /** Names the episode. */
  readonly episode: string;
  readonly seed: number;
  /** Told what each completion came to. */
  readonly onUsage: (usage: CompletionUsage) => void;
}

/** The condenser of one episode; undefined where its environment shows passages as they are. */
export function createCondense(setting: CondenseSetting): Condense | undefined {
  const { condense } = setting.environment;
  if (condense === undefined) return undefined;
  let calls = 0;
  return async (found, signal) => {
    const call = calls++;
    const opening = await fittingPrompt(found, setting, condense.maxTokens);
    if (opening === undefined) return nothingFound;
    const { policy, sampling, tokenizer, episode, seed, onUsage } = setting;
    const context = {
      text: opening.text,
      parts: [{ source: "prompt" as const, text: opening.text }],
      ...(tokenizer !== undefined && { tokens: opening.tokens }),
      episode: `${episode}/condense/${call}`,
      seed: random(seed, "condense", episode, call).below(2 ** 31),
    };
    const options = { ...sampling, maxTokens: condense.maxTokens, stop: [] };
    const [completion] = await policy.complete([context], options, signal);
    if (completion === undefined) throw new PolicyError("expected one completion for one context, got none");
    onUsage(completion.usage);
    return completion.text.trim() || nothingFound;
  };
}

interface Opening {
  readonly text: string;
  readonly tokens: number[];
}

/** The prompt with as much of the end of the reasoning as leaves room for the reply; undefined where not even none does. */
async function fittingPrompt(
  found: FoundDocuments,
  { tokenizer, contextLength, environment }: CondenseSetting,
  maxTokens: number,
): Promise<Opening | undefined> {
  let reasoning = found.reasoning;
  for (;;) {
    const text = await chatText(condensePrompt({ ...found, reasoning }), environment, tokenizer);
    const tokens = tokenizer === undefined ? [] : openingTokens(text, tokenizer);
    if (tokens.length + maxTokens <= (contextLength ?? Number.POSITIVE_INFINITY)) return { text, tokens };
    if (reasoning === "") return undefined;
    reasoning = reasoning.slice(Math.ceil(reasoning.length / 2)).replace(/^[\uDC00-\uDFFF]/, "");
  }
}
