/** Text from outside as Markdown: nothing that a data set, a recipe or a model's name says becomes markup. Pure. */

/** Text within a line or a cell: one line, every sign that has a meaning in Markdown or HTML escaped. */
export function markdownText(text: string): string {
  return text.replace(/\s+/g, " ").replace(/[\\`*_{}[\]()<>#+!|~&$:@"'^=]/g, "\\$&");
}

/** A block of code that shows `text` as it is, within a fence longer than any that it holds. */
export function codeBlock(text: string, language = ""): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text.replace(/\n+$/, "")}\n${fence}`;
}

/** A table; cells are Markdown already. */
export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}
