/** What can be found: the retrievable unit of a corpus. */
export interface Passage {
  readonly id: string;
  readonly title: string;
  readonly text: string;
  /** Where the passage was cut from; absent when it is a whole record. */
  readonly source?: PassageSource;
  /** Keys of the source record that Forager does not know; kept as they came. */
  readonly extra?: Readonly<Record<string, unknown>>;
}

/** A place in a document: `text` of the passage is the document's text from `start` to `end`. */
export interface PassageSource {
  /** Id of the document: the record's id, or the path relative to the folder that was read. */
  readonly document: string;
  /** First character, counted in UTF-16 code units of the document's text from 0. */
  readonly start: number;
  /** One after the last character. */
  readonly end: number;
  /** Page on which the passage starts, from 1; documents with pages only. */
  readonly page?: number;
}
