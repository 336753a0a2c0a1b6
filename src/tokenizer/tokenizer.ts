/** How a model was taught to chat: a Jinja template, and what it calls tokens by name, such as `bos_token`. */
export interface ChatFormat {
  readonly template: string;
  readonly specialTokens: Readonly<Record<string, string>>;
}

/** Text to token ids and back. Ids are the model's; terms of a lexical index are another matter (`retrieval/analyze`). */
export interface Tokenizer {
  /** SHA-256 of the vocabulary, merges and added tokens. */
  readonly hash: string;
  readonly vocabularySize: number;
  /** The id that ends a text; sampled, it ends a turn. */
  readonly endOfTextId: number;
  /** Further ids that end a text where the model was taught several, such as one for a turn and one for a document. */
  readonly furtherEndIds?: readonly number[];
  /** The id that the model's own tokenizer puts before a text; absent where it puts none. `encode` does not add it. */
  readonly beginOfTextId?: number;
  /** The id used to fill batches; never carries loss. */
  readonly paddingId: number;
  /** Added tokens that are matched as a whole in any text (tags, control tokens); untrusted text must not hold them. */
  readonly specialTokens: readonly string[];
  /** Absent where the model knows no chats; `renderChat` uses it. */
  readonly chat?: ChatFormat;
  encode(text: string): number[];
  decode(tokens: readonly number[]): string;
}
