/** Command lines that a person can paste: they work in a checkout and wherever the package is installed. */

/** `npx forager` with these words, quoted for a POSIX shell where they need it. */
export function commandLine(...words: readonly string[]): string {
  return ["npx", "forager", ...words.map(shellWord)].join(" ");
}

/** One word of a command line, quoted for a POSIX shell where it needs it. */
export function shellWord(text: string): string {
  return /^[\w./:=@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
