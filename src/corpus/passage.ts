/** What can be found: the retrievable unit of a corpus. */
export interface Passage {
  readonly id: string;
  readonly title: string;
  readonly text: string;
  /** Keys of the source record that Forager does not know; kept as they came. */
  readonly extra?: Readonly<Record<string, unknown>>;
}
