/** The options of a corpus as its schema gives them, as `readCorpora` takes them: what is absent is left out. */
import type { z } from "zod";
import type { corpusOptionsSchema } from "./corpus-options.ts";
import type { ReadCorporaOptions } from "./read-corpora.ts";

export function readingOptions(
  options: Partial<z.output<typeof corpusOptionsSchema>> | undefined,
): ReadCorporaOptions {
  const given = Object.entries(options ?? {}).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given) as ReadCorporaOptions;
}
