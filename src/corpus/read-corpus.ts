/**
 * A corpus in one file, read strictly or with bad lines told, and written as JSON Lines of `{"id","title","text"}`,
 * which can hold every passage.
 */
import type { DataFormatError } from "../errors.ts";
import { writeFileAtomic } from "../shared/files.ts";
import type { Passage } from "./passage.ts";
import { passageLine } from "./passage-record.ts";
import { readCorpora } from "./read-corpora.ts";

export { idOf, passageLine, passageOf } from "./passage-record.ts";

export interface ReadCorpusOptions {
  /** Called with what is wrong with a line, which is then skipped; without it the first bad line ends the reading. */
  readonly onSkip?: (error: DataFormatError) => void;
}

/** The passages of a file in order; throws what `readCorpora` throws. */
export function readCorpus(path: string, { onSkip }: ReadCorpusOptions = {}): AsyncGenerator<Passage> {
  if (onSkip === undefined) return readCorpora([path]);
  return readCorpora([path], {
    strict: false,
    onProblem: ({ kind, error }) => {
      if (kind !== "duplicatePassage") onSkip(error);
    },
  });
}

/** Writes a corpus so that `readCorpus` gives back equal passages. Throws `FileError`. */
export async function writeCorpus(path: string, passages: Iterable<Passage>): Promise<void> {
  const chunks: Buffer[] = [];
  for (const passage of passages) chunks.push(Buffer.from(`${passageLine(passage)}\n`));
  await writeFileAtomic(path, Buffer.concat(chunks));
}
