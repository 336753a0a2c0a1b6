/**
 * What UTF-16 code units are to words: separators, plain letters (a-z and 0-9, by number), or other letters, digits and
 * marks. Halves of a surrogate pair count as letters. What is not ASCII is found out when it is first met.
 */

export const SEPARATOR = 0;
/** Kinds from 1 to here are plain letters. */
export const LAST_PLAIN = 36;
const OTHER_LETTER = 37;
const UNKNOWN = 255;

const kinds = new Uint8Array(1 << 16).fill(UNKNOWN);
const plain = "abcdefghijklmnopqrstuvwxyz0123456789";
for (let code = 0; code < 128; code++)
  kinds[code] = plain.indexOf(String.fromCharCode(code).toLowerCase()) + 1;

/** `SEPARATOR`, a plain letter of either case as 1 to `LAST_PLAIN`, or more for another letter. */
export function kindOf(code: number): number {
  const kind = kinds[code] as number;
  return kind === UNKNOWN ? learn(code) : kind;
}

function learn(code: number): number {
  const isLetter = (code >= 0xd800 && code <= 0xdfff) || /[\p{L}\p{N}\p{M}]/u.test(String.fromCharCode(code));
  const kind = isLetter ? OTHER_LETTER : SEPARATOR;
  kinds[code] = kind;
  return kind;
}

/** A letter with A-Z in lower case. */
export function lower(code: number): number {
  return code >= 65 && code <= 90 ? code + 32 : code;
}
