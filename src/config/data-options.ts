/** Options that say what is asked and searched: a built-in world, or files of the user. */
import { z } from "zod";
import { corpusOptionsSchema } from "../corpus/corpus-options.ts";
import { worldOptionsSchema } from "../corpus/world.ts";

const path = z.string().min(1, "a path must not be empty");
const paths = z.union([path, z.array(path).min(1)]);

const trainPart = z
  .strictObject({
    part: z.int().min(1).describe("Which of the parts, from 1."),
    of: z
      .int()
      .min(1)
      .describe("How many parts there are; question 1 goes into the first, 2 into the second, and so on."),
  })
  .refine(({ part, of }) => part <= of, { path: ["part"], message: "there are fewer parts than that" })
  .optional()
  .describe(
    "Trains on one of several equal parts of the training questions, so that models which must not have learned from the same ones can share a data set; absent: on all.",
  );

export const dataOptionsSchema = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("world").describe("Facts and questions made by Forager."),
    world: worldOptionsSchema.describe("Which world, and how large."),
    trainPart,
  }),
  z.strictObject({
    type: z.literal("files").describe("A corpus and questions from files."),
    folder: path
      .optional()
      .describe(
        "Where relative paths of corpus and questions start; itself relative to the recipe's folder. Absent: the recipe's folder.",
      ),
    trainPart,
    corpus: paths
      .optional()
      .describe(
        "Files or folders of passages, in any format of docs/corpora.md. Needed by retriever.type bm25; with index, the index must be of it. Paths are relative to data.folder.",
      ),
    reading: z
      .strictObject({
        ...corpusOptionsSchema.shape,
        strict: z
          .boolean()
          .default(true)
          .describe(
            "Stop at the first bad line, repeated id or empty passage; false leaves them out and says so.",
          ),
      })
      .prefault({})
      .describe("How the corpus is read; as the index was made, where there is one."),
    questions: z
      .strictObject({
        train: paths
          .optional()
          .describe(
            "JSON-lines files of questions to train on: {id, question, golden_answers}; needed by a recipe with stages.",
          ),
        evaluation: paths.describe(
          "JSON-lines files of held-out questions, or benchmarks by name (nq, triviaqa, popqa, hotpotqa, 2wikimultihopqa, musique, bamboogle), which lie in data.folder or are fetched (docs/benchmarks.md); no question of train may be among them.",
        ),
        validation: paths
          .optional()
          .describe(
            "JSON-lines files of held-out questions by which `until` of a stage chooses weights; none may be among train or evaluation, whose scores would be too good.",
          ),
      })
      .describe("Files of questions; each file is a data set named after it."),
  }),
]);

export type DataOptions = z.infer<typeof dataOptionsSchema>;
