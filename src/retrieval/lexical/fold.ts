/**
 * Letters that are written alike: NFKD takes letters and their marks apart (Unicode Standard Annex 15), Latin marks go, case
 * goes, and letters that Unicode does not take apart become the plain ones people type for them, as in Lucene's
 * ASCIIFoldingFilter. Other scripts keep their letters and their marks.
 */
import { z } from "zod";

const foldings = z.enum(["letters", "marks"]);
export type Folding = z.output<typeof foldings>;

export const foldingSchema = foldings
  .default("letters")
  .describe(
    "What is written alike: marks, letters with and without accents (é and e); letters, also those that are no plain letter with a mark (ß and ss, æ and ae, ø and o, ł and l, þ and th).",
  );

/** The folding of what is kept on disk: what does not name its folding folds marks. */
export const recordedFoldingSchema = foldings.default("marks");

/** Options as they go into identities: a folding that need not be recorded is left out. */
export function namedOptions<T extends { readonly folding: Folding }>(options: T): T | Omit<T, "folding"> {
  const { folding, ...others } = options;
  return folding === "marks" ? others : options;
}

/** `word` folded: "Ångström" gives angstrom; "Straße" gives strasse, or straße where only marks are folded. */
export function fold(word: string, folding: Folding): string {
  const plain = word
    .normalize("NFKD")
    .replace(/[\u0300-\u036f]+/g, "")
    .toLowerCase();
  return folding === "marks" ? plain : plain.replace(SPECIAL, (letter) => PLAIN[letter] as string);
}

/** Letters of living alphabets that stay whole in NFKD; the last ones are signs between letters (Hawaiʻi). */
const PLAIN: Readonly<Record<string, string>> = {
  ß: "ss",
  æ: "ae",
  œ: "oe",
  ø: "o",
  đ: "d",
  ð: "d",
  þ: "th",
  ł: "l",
  ı: "i",
  ħ: "h",
  ŧ: "t",
  ŋ: "n",
  ĸ: "q",
  ə: "a",
  ɓ: "b",
  ɗ: "d",
  ɖ: "d",
  ɛ: "e",
  ɔ: "o",
  ƒ: "f",
  ƙ: "k",
  ƴ: "y",
  "\u02bb": "",
  "\u02bc": "",
  "\u02be": "",
  "\u02bf": "",
};
const SPECIAL = new RegExp(`[${Object.keys(PLAIN).join("")}]`, "g");
