/** The kinds of retriever that a recipe can name; each is declared where it is implemented. */
import { z } from "zod";
import { encoderReferenceSchema } from "../retrieval/encoder-reference.ts";
import { lanceSourceSchema } from "../retrieval/lance/lance-options.ts";
import { bm25OptionsSchema } from "../retrieval/lexical/bm25.ts";
import { replaySourceSchema } from "../retrieval/recording/replay-retriever.ts";
import { remoteSourceSchema } from "../retrieval/remote/remote-options.ts";
import { searchOptionsSchema } from "../retrieval/search-folder.ts";
import { simulatedSourceSchema } from "../retrieval/simulated/simulated-options.ts";
import { webSourceSchema } from "../retrieval/web/web-options.ts";
import { defaultType } from "../shared/default-type.ts";

const path = z.string().min(1, "a path must not be empty");

export const retrieverSchema = z.discriminatedUnion("type", [
  bm25OptionsSchema.safeExtend({
    type: defaultType("bm25").describe("An index of words, built from data.corpus when the work starts."),
  }),
  searchOptionsSchema.safeExtend({
    type: z.literal("index").describe("A folder made by `forager index`: words, vectors, or both."),
    path: path.describe("The folder. Relative to the recipe's folder."),
  }),
  lanceSourceSchema.safeExtend({
    encoder: encoderReferenceSchema
      .optional()
      .describe("The encoder the table was built with; the modes dense and hybrid need it."),
  }),
  remoteSourceSchema,
  webSourceSchema,
  simulatedSourceSchema.safeExtend({
    model: path.describe("The model that writes: a model folder. Relative to the recipe's folder."),
    temperature: z.number().min(0).max(2).default(0).describe("Of its sampling; 0 is greedy."),
    maxTokens: z.int().min(1).default(512).describe("Most tokens of one reply."),
  }),
  replaySourceSchema,
]);

export type RetrieverOptions = z.output<typeof retrieverSchema>;
