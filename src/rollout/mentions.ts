/** Whether a text mentions a name, compared by words: letters and digits count, case, accents and punctuation do not. */

/** The words of `text` with a space before and after each. */
export function spaced(text: string): string {
  const words = text
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, " ");
  return ` ${words.trim()} `;
}

/** True when the words of `name` (at least one) stand in `text` in a row. */
export function mentions(text: string, name: string): boolean {
  const words = spaced(name);
  return words.trim() !== "" && spaced(text).includes(words);
}
