/** Several files as one corpus: the passages of each in order, with ids that are unique over all of them. */
import { DataFormatError } from "../errors.ts";
import type { Passage } from "./passage.ts";
import { readCorpus } from "./read-corpus.ts";

/** The passages of the files in order. Throws what `readCorpus` throws, and `DataFormatError` for an id of an earlier file. */
export async function* readCorpora(paths: readonly string[]): AsyncGenerator<Passage> {
  const fileOf = new Map<string, string>();
  for (const path of paths)
    for await (const passage of readCorpus(path)) {
      const earlier = paths.length > 1 ? fileOf.get(passage.id) : undefined;
      if (earlier !== undefined)
        throw new DataFormatError(
          path,
          undefined,
          `expected ids that are unique over all files, got ${JSON.stringify(passage.id)}, which ${earlier} has too`,
        );
      if (paths.length > 1) fileOf.set(passage.id, path);
      yield passage;
    }
}
