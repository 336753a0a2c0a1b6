/** What `forager index` can be told with `--set`: how the corpus is read, how words are indexed, how passages are encoded. */
import { z } from "zod";
import { optionsFromOverrides } from "../config/validate.ts";
import { corpusOptionsSchema } from "../corpus/corpus-options.ts";
import { denseOptionsSchema } from "../retrieval/dense/build-dense.ts";
import { encoderOptionsSchema } from "../retrieval/dense/encoder-options.ts";
import { type Bm25Options, bm25OptionsSchema } from "../retrieval/lexical/bm25.ts";

const { format, encoding, strict, ...corpusShape } = corpusOptionsSchema.shape;

/** Options with a flag of their own are left to it. */
const schema = z.strictObject({
  ...bm25OptionsSchema.shape,
  ...corpusShape,
  dense: denseOptionsSchema.omit({ approximate: true }).prefault({}),
  encoder: encoderOptionsSchema.prefault({}),
});

const flagSchema = z.strictObject({ format, encoding, strict });

export interface IndexSettings {
  readonly lexical: Bm25Options;
  readonly corpus: z.output<typeof corpusOptionsSchema>;
  readonly dense: Omit<z.output<typeof denseOptionsSchema>, "approximate">;
  readonly encoder: z.output<typeof encoderOptionsSchema>;
}

/** The settings of one command line. Throws `ConfigError`. */
export function indexSettings(flags: {
  readonly set: readonly string[];
  readonly format?: string | undefined;
  readonly encoding?: string | undefined;
  readonly strict: boolean;
}): IndexSettings {
  const { dense, encoder, dropDuplicates, columns, chunk, ...lexical } = optionsFromOverrides(
    schema,
    flags.set,
  );
  const words = [
    ...(flags.format === undefined ? [] : [`format=${flags.format}`]),
    ...(flags.encoding === undefined ? [] : [`encoding=${JSON.stringify(flags.encoding)}`]),
    `strict=${flags.strict}`,
  ];
  const reading = optionsFromOverrides(flagSchema, words);
  return { lexical, corpus: { ...reading, dropDuplicates, columns, chunk }, dense, encoder };
}
