/** A text with a title, before it is cut into passages; what every reader of documents gives. */
export interface DocumentText {
  /** Empty when the document has none. */
  readonly title: string;
  readonly text: string;
  /** Where each page starts in `text`; absent for documents without pages. */
  readonly pageStarts?: readonly number[];
  /** Further facts of the document, such as the front matter of Markdown. */
  readonly extra?: Readonly<Record<string, unknown>>;
}

/**
 * At most one blank line between paragraphs, no blanks at the ends of lines, no blank lines at either end. A run of
 * blanks is looked at from its start only, or a long one inside a line would take time by its length squared.
 */
export function tidyText(text: string): string {
  return text
    .replace(/(?<![^\S\n])[^\S\n]+$/gm, "")
    .replace(/\n{3,}/g, "\n\n")
    .replace(/^\n+|\n+$/g, "");
}
