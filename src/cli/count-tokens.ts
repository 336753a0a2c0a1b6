/** Counts tokens for `chunk.by=tokens`, by the tokenizer that a command names. */
import type { CountTokens } from "../corpus/chunk.ts";

/** The counter of the tokenizer in `folder`; nothing without one. Throws `FileError`, `DataFormatError`. */
export async function countTokensBy(
  folder: string | undefined,
): Promise<{ readonly countTokens?: CountTokens }> {
  if (folder === undefined) return {};
  const { readTokenizer } = await import("../tokenizer/tokenizer-file.ts");
  const tokenizer = await readTokenizer(folder, { idsMayDiffer: true });
  return { countTokens: (text) => tokenizer.encode(text).length };
}

export const tokenizerFlag = {
  type: "text",
  value: "FOLDER",
  doc: "Folder with the tokenizer.json that counts tokens for chunk.by=tokens.",
} as const;
