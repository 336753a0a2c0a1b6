/**
 * The environment's answer to a search: passages rendered by a template, made safe, shortened to a token limit,
 * wrapped by the codec. Only passage text is ever shortened, so the closing tag is always there. When not all
 * fits, short passages stay whole and the long ones are cut to one common length.
 */
import type { ScoredPassage } from "../retrieval/retriever.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import type { Codec } from "./action.ts";
import { findCodec } from "./codecs.ts";
import type { EnvironmentOptions } from "./environment-options.ts";
import { neutralizer } from "./neutralize.ts";
import { findPassageTemplate, type PassageTemplate } from "./passage-template.ts";

export interface ObservationFormat {
  readonly codec: Codec;
  readonly template: PassageTemplate;
  /** Makes text from outside safe. */
  readonly neutralize: (text: string) => string;
  /** Number of the first passage; absent: 1. */
  readonly firstNumber?: number;
  /** Most tokens of one observation. */
  readonly maxTokens: number;
  /** Without one, a token is counted for every four UTF-16 units. */
  readonly tokenizer: Tokenizer | undefined;
}

/** The format that the options of an environment ask for. */
export function observationFormat(
  options: EnvironmentOptions,
  tokenizer: Tokenizer | undefined,
  codec: Codec = findCodec(options.codec),
): ObservationFormat {
  return {
    codec,
    template: findPassageTemplate(options.passageTemplate),
    neutralize: neutralizer([...codec.tags, ...(tokenizer?.specialTokens ?? [])]),
    maxTokens: options.maxObservationTokens,
    tokenizer,
  };
}

export interface Observation {
  readonly text: string;
  /** True when passages were shortened. */
  readonly isTruncated: boolean;
}

const charactersPerToken = 4;

/**
 * Renders `passages`, best first, and `notice` (a sentence of the environment, perhaps empty) after them. It has at
 * most `maxTokens` tokens, unless the wrapper and the notice alone have more.
 */
export function renderObservation(
  passages: readonly ScoredPassage[],
  notice: string,
  format: ObservationFormat,
): Observation {
  const rendered = passages.map(({ passage }, i) =>
    format.neutralize(format.template.render(passage, (format.firstNumber ?? 1) + i)),
  );
  const wrap = (parts: readonly string[]): string =>
    format.codec.renderObservation(format.neutralize(parts.join(""))) + notice;
  const whole = wrap(rendered);
  let excess = countTokens(whole, format) - format.maxTokens;
  if (excess <= 0) return { text: whole, isTruncated: false };
  const lengths = rendered.map((part) => countTokens(part, format));
  let limit = Math.max(...lengths, 0);
  let text = whole;
  while (excess > 0 && limit > 0) {
    limit = commonLimit(lengths, limit, excess);
    text = wrap(
      rendered.map((part, i) => ((lengths[i] as number) > limit ? firstTokens(part, limit, format) : part)),
    );
    excess = countTokens(text, format) - format.maxTokens;
  }
  return { text, isTruncated: true };
}

/** The greatest limit below `limit` under which the parts lose at least `excess` tokens more than under `limit`; at least 0. */
function commonLimit(lengths: readonly number[], limit: number, excess: number): number {
  let lower = limit;
  for (let saved = 0; saved < excess && lower > 0; lower--)
    for (const length of lengths) if (length >= lower) saved++;
  return lower;
}

/** The longest start of `text` with at most `count` tokens that ends with a whole character, and a line end for one cut off. */
function firstTokens(text: string, count: number, { tokenizer }: ObservationFormat): string {
  const start =
    tokenizer === undefined
      ? text.slice(0, count * charactersPerToken)
      : tokenizer.decode(tokenizer.encode(text).slice(0, count));
  const isWhole = text.startsWith(start) && !/[\uD800-\uDBFF]$/.test(start);
  const kept = isWhole ? start : start.replace(/[\uFFFD\uD800-\uDBFF]+$/, "");
  return count > 0 && text.endsWith("\n") ? `${kept.trimEnd()}\n` : kept;
}

function countTokens(text: string, { tokenizer }: ObservationFormat): number {
  return tokenizer === undefined
    ? Math.ceil(text.length / charactersPerToken)
    : tokenizer.encode(text).length;
}
