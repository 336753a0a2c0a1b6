/**
 * An index on disk: a folder with the passages and everything a search needs, so that the folder can be moved,
 * and the corpus file removed. `index.json` names version, options, corpus hash and the SHA-256 of each part.
 * A folder appears whole or not at all, and its parts are never changed. This file saves an index that is in memory;
 * larger corpora are built piece by piece (`index-folder-build.ts`).
 */
import { createFolderAtomic } from "../shared/files.ts";
import { writeManifest } from "./index-folder-manifest.ts";
import { PassageWriter, RowWriter } from "./index-folder-write.ts";
import type { Bm25Index, Bm25Parts } from "./lexical/bm25-index.ts";
import type { IndexRow } from "./lexical/merge-segments.ts";

export {
  type BuildIndexOptions,
  type BuiltIndex,
  buildIndexFolder,
  removeRests,
} from "./index-folder-build.ts";
export { type OpenIndexOptions, openIndex, verifyIndex } from "./index-folder-open.ts";

/** Writes the index into the new folder `folder`. Throws `FileError`, also when `folder` exists. */
export async function saveIndex(index: Bm25Index, folder: string): Promise<void> {
  const { options, corpusHash, passages } = index.parts;
  await createFolderAtomic(folder, async (target) => {
    const passageWriter = new PassageWriter(target);
    const rowWriter = new RowWriter(target);
    try {
      for (let position = 0; position < passages.count; position++) passageWriter.add(passages.get(position));
      for (const row of rowsOf(index.parts)) rowWriter.add(row);
      const { parts, counts } = rowWriter.finish();
      writeManifest(target, {
        options,
        corpusHash,
        counts: { passages: passages.count, ...counts },
        parts: { ...passageWriter.finish(), ...parts },
      });
    } finally {
      passageWriter.close();
      rowWriter.close();
    }
  });
}

function* rowsOf({ vocabulary, postings }: Bm25Parts): Generator<IndexRow> {
  for (let term = 0; term < vocabulary.count; term++) {
    const { passages, impacts, from, to, least, greatest } = postings.entriesOf(term, 1);
    yield {
      term: vocabulary.at(term),
      passages: passages.subarray(from, to),
      impacts: impacts.subarray(from, to),
      least,
      greatest,
    };
  }
}
