/**
 * The options of a BM25 index and the formula that they name. A score is a sum over the terms t of the query,
 *   n_q(t) · impact,  with  norm = k1 (1 - b + b |p| / mean length)  and f the frequency of t in p:
 *   lucene (Robertson and Zaragoza 2009; Lucene 8 and later)
 *     impact = ln(1 + (N - n_t + 0.5) / (n_t + 0.5)) · f / (f + norm)
 *   bm25+ (Lv and Zhai 2011, delta = 1)
 *     impact = ln((N + 1) / n_t) · (1 + (k1 + 1) f / (f + norm)), 0 where f is 0
 * Impacts are computed once and kept as 32-bit floats.
 */
import { z } from "zod";
import { ConfigError } from "../../errors.ts";
import { analysisOptionsSchema } from "./analyze.ts";
import { recordedFoldingSchema } from "./fold.ts";
import { fuzzyOptionsSchema } from "./fuzzy.ts";

export const bm25OptionsSchema = z.strictObject({
  variant: z
    .enum(["lucene", "bm25+"])
    .default("lucene")
    .describe("The formula; bm25+ (delta 1) never ranks a long passage behind one without the term."),
  k1: z.number().min(0).max(10).default(1.2).describe("How soon more occurrences of a term stop to matter."),
  b: z
    .number()
    .min(0)
    .max(1)
    .default(0.75)
    .describe("How much long passages are held back: 0 not, 1 in proportion to length."),
  titleWeight: z
    .int()
    .min(0)
    .max(10)
    .default(3)
    .describe("How many times a title counts; 0 leaves titles out."),
  ...analysisOptionsSchema.shape,
  fuzzy: z
    .union([z.literal(false), fuzzyOptionsSchema])
    .default(false)
    .describe("Let close terms stand in for query terms that no passage holds (misspelt names)."),
});
export type Bm25Options = z.output<typeof bm25OptionsSchema>;

/** The options as an index folder records them. */
export const recordedBm25OptionsSchema = bm25OptionsSchema.extend({ folding: recordedFoldingSchema });

/** The options with their defaults. Throws `ConfigError`. */
export function settingsOf(options: Partial<Bm25Options>): Bm25Options {
  const parsed = bm25OptionsSchema.safeParse(options);
  if (parsed.success) return parsed.data;
  throw new ConfigError(`index options: ${z.prettifyError(parsed.error)}`);
}

/** What the impacts of an index depend on besides the frequencies. */
export interface Formula {
  readonly passageCount: number;
  /** The part of an impact that is the same for all entries of a term in `holders` passages. */
  idf(holders: number): number;
  /** Writes the impacts of entries of one term to the same places of `target`. */
  impacts(entries: Entries, row: Row, target: Float32Array): void;
}

/** Passages and how often each holds a term. */
export interface Entries {
  readonly passages: Uint32Array;
  readonly frequencies: Uint16Array;
}

/** The entries of one term, and the part of their impacts that is the same for all. */
export interface Row {
  readonly from: number;
  readonly to: number;
  readonly idf: number;
}

/** The formula for passages of these lengths (in terms). */
export function formulaOf(lengths: Uint32Array, { variant, k1, b }: Bm25Options): Formula {
  const norms = lengthNorms(lengths, k1, b);
  const n = lengths.length;
  if (variant === "lucene")
    return {
      passageCount: n,
      idf: (holders) => Math.log(1 + (n - holders + 0.5) / (holders + 0.5)),
      impacts: (entries, row, target) => luceneImpacts(entries, row, { norms, target }),
    };
  return {
    passageCount: n,
    idf: (holders) => Math.log((n + 1) / holders),
    impacts: (entries, row, target) => plusImpacts(entries, row, { norms, target, k1 }),
  };
}

function luceneImpacts(
  { passages, frequencies }: Entries,
  { from, to, idf }: Row,
  { norms, target }: { readonly norms: Float64Array; readonly target: Float32Array },
): void {
  for (let i = from; i < to; i++) {
    const frequency = frequencies[i] as number;
    target[i] = (idf * frequency) / (frequency + (norms[passages[i] as number] as number));
  }
}

function plusImpacts(
  { passages, frequencies }: Entries,
  { from, to, idf }: Row,
  { norms, target, k1 }: { readonly norms: Float64Array; readonly target: Float32Array; readonly k1: number },
): void {
  for (let i = from; i < to; i++) {
    const frequency = frequencies[i] as number;
    target[i] = idf * (1 + ((k1 + 1) * frequency) / (frequency + (norms[passages[i] as number] as number)));
  }
}

/** (passages) k1 (1 - b + b length / mean length) */
function lengthNorms(lengths: Uint32Array, k1: number, b: number): Float64Array {
  const mean = lengths.reduce((total, length) => total + length, 0) / lengths.length;
  // `Float64Array.from` would gather all values in a list first, which are ten million here and there.
  const norms = new Float64Array(lengths.length);
  for (let i = 0; i < norms.length; i++)
    norms[i] = k1 * (1 - b + (mean === 0 ? 0 : (b * (lengths[i] as number)) / mean));
  return norms;
}
