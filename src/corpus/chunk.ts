/**
 * Cutting a text into pieces of a size, by sentences, words or tokens, with an overlap. Pieces without overlap join
 * to the very text, so nothing is lost. Words are runs between blanks; text of scripts without blanks (Chinese,
 * Japanese, Thai and others) is cut at the words that Unicode's rules find. No piece ends inside a character.
 */
import { z } from "zod";
import { ConfigError } from "../errors.ts";

const size = z.int().min(1).describe("Most units in a piece; at least 1.");
const overlap = z
  .int()
  .min(0)
  .default(0)
  .describe("Units that a piece repeats from the end of the one before; less than the size.");
const wholeSentences = z
  .boolean()
  .default(false)
  .describe("End a piece at the end of a sentence where one fits; a longer sentence is cut.");

const unitOptionsSchema = z.strictObject({
  by: z.enum(["words", "tokens"]).describe("What is counted: words between blanks, or tokens of a model."),
  size: size.default(100),
  overlap,
  wholeSentences,
});
const sentenceOptionsSchema = z.strictObject({
  by: z.literal("sentences").describe("Count sentences."),
  size: size.default(5),
  overlap,
});
const wholeOptionsSchema = z.strictObject({
  by: z.literal("document").describe("Do not cut: every document is one passage."),
});

/** How documents, and records when this is given for them, are cut into passages. */
export const chunkOptionsSchema = z
  .discriminatedUnion("by", [unitOptionsSchema, sentenceOptionsSchema, wholeOptionsSchema])
  .refine((options) => options.by === "document" || options.overlap < options.size, {
    message: "expected an overlap that is less than the size",
    path: ["overlap"],
  });
export type ChunkOptions = z.output<typeof chunkOptionsSchema>;

/** How many tokens of a model a text has. */
export type CountTokens = (text: string) => number;

/** A piece of a text: from `start` to before `end`, in UTF-16 code units. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/**
 * The pieces of a text in order; without overlap they join to the text. An empty text has none. Throws `ConfigError`
 * when tokens are to be counted and `countTokens` is missing.
 */
export function chunkSpans(text: string, options: ChunkOptions, countTokens?: CountTokens): Span[] {
  if (text === "") return [];
  if (options.by === "document") return [{ start: 0, end: text.length }];
  if (options.by === "tokens" && countTokens === undefined)
    throw new ConfigError(
      "expected a tokenizer to cut passages by tokens, got none; cut by words or sentences",
      {
        path: "chunk.by",
      },
    );
  const count = options.by === "tokens" ? countTokens : undefined;
  const ends = options.by === "sentences" ? sentenceEnds(text) : wordEnds(text);
  const units =
    count === undefined
      ? ends
      : ends.flatMap((end, i) =>
          fitUnit(text, { start: ends[i - 1] ?? 0, end }, { size: options.size, count }),
        );
  const weights = units.map((end, i) => count?.(text.slice(units[i - 1] ?? 0, end)) ?? 1);
  const stops = options.by !== "sentences" && options.wholeSentences ? stopFlags(text, units) : undefined;
  return packUnits({ text, units, weights, stops, count }, options);
}

/** A text as units that end at `units`, with what each weighs. */
interface Units {
  readonly text: string;
  readonly units: readonly number[];
  readonly weights: readonly number[];
  /** Which units end a sentence; undefined when that does not matter. */
  readonly stops: readonly boolean[] | undefined;
  readonly count: CountTokens | undefined;
}

/** Fills pieces greedily, each from the first unit after the one before, less the overlap. */
function packUnits(parts: Units, options: { readonly size: number; readonly overlap: number }): Span[] {
  const { units, weights, stops } = parts;
  const spans: Span[] = [];
  let reached = 0;
  for (let first = 0; first < units.length; ) {
    let next = fill(parts, first, options.size);
    if (stops && next < units.length) {
      const stop = stops.lastIndexOf(true, next - 1);
      if (stop >= first) next = stop + 1;
    }
    if (next <= reached) {
      // The repeated units leave no room for a new one: repeat fewer.
      first++;
      continue;
    }
    spans.push({ start: units[first - 1] ?? 0, end: units[next - 1] as number });
    if (next >= units.length) break;
    reached = next;
    let repeated = 0;
    let start = next;
    while (start - 1 > first && repeated + (weights[start - 1] as number) <= options.overlap)
      repeated += weights[--start] as number;
    first = start;
  }
  return spans;
}

/** The unit after the last that fits; at least one fits. */
function fill({ text, units, weights, count }: Units, first: number, size: number): number {
  let next = first + 1;
  let total = weights[first] as number;
  while (next < units.length && total + (weights[next] as number) <= size) total += weights[next++] as number;
  if (count === undefined) return next;
  // Units counted alone may join to more tokens than their sum.
  const start = units[first - 1] ?? 0;
  while (next > first + 1 && count(text.slice(start, units[next - 1])) > size) next--;
  return next;
}

/**
 * Ends of words; the blanks before a word belong to it, those at the end of the text to the last. A run of blanks is
 * looked at from its start only, or a long one at the end would take time by its length squared.
 */
function wordEnds(text: string): number[] {
  const ends: number[] = [];
  for (const match of text.matchAll(/(?<!\s)\s*\S+/g)) {
    if (hasNoBlanks.test(match[0])) ends.push(...segmentEnds(match[0]).map((end) => match.index + end));
    else ends.push(match.index + match[0].length);
  }
  return closeEnds(ends, text.length);
}

/** Scripts that write no blanks between words. */
const hasNoBlanks =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;
const wordSegmenter = new Intl.Segmenter("en", { granularity: "word" });
const sentenceSegmenter = new Intl.Segmenter("en", { granularity: "sentence" });
const characterSegmenter = new Intl.Segmenter("en", { granularity: "grapheme" });

/** Ends of the words in a run without blanks; signs belong to the word before them. */
function segmentEnds(run: string): number[] {
  const ends: number[] = [];
  for (const { segment, index, isWordLike } of wordSegmenter.segment(run)) {
    const end = index + segment.length;
    if (isWordLike || ends.length === 0) ends.push(end);
    else ends[ends.length - 1] = end;
  }
  return ends;
}

function sentenceEnds(text: string): number[] {
  return Array.from(sentenceSegmenter.segment(text), ({ segment, index }) => index + segment.length);
}

/** The last unit reaches to the end of the text. */
function closeEnds(ends: number[], length: number): number[] {
  if (ends.length === 0) return [length];
  ends[ends.length - 1] = length;
  return ends;
}

/** Which units end where a sentence does, the blanks after it left aside. */
function stopFlags(text: string, units: readonly number[]): boolean[] {
  const ends = new Set<number>();
  for (const { segment, index } of sentenceSegmenter.segment(text))
    ends.add(index + segment.trimEnd().length);
  return units.map((end) => ends.has(end));
}

/** A unit of more tokens than a piece holds is cut between characters, each part as long as fits. */
function fitUnit(
  text: string,
  { start, end }: Span,
  { size, count }: { readonly size: number; readonly count: CountTokens },
): number[] {
  if (count(text.slice(start, end)) <= size) return [end];
  const characters = Array.from(
    characterSegmenter.segment(text.slice(start, end)),
    ({ segment, index }) => start + index + segment.length,
  );
  const ends: number[] = [];
  let from = start;
  for (let first = 0; first < characters.length; ) {
    let low = first;
    let high = characters.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (count(text.slice(from, characters[middle])) <= size) low = middle;
      else high = middle - 1;
    }
    from = characters[low] as number;
    ends.push(from);
    first = low + 1;
  }
  return ends;
}
