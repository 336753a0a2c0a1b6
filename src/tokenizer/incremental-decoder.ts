/**
 * Text of tokens as they come, for streaming. A token may end inside a character of several bytes: its text is held back
 * until the character is whole. Some tokenizers drop a space at the start of what they decode, so each piece is
 * decoded after the one before it.
 */
import type { Tokenizer } from "./tokenizer.ts";

/** What a decoder puts where bytes are no character, or not yet one. */
const unfinished = "\ufffd";

export class IncrementalDecoder {
  readonly #tokenizer: Pick<Tokenizer, "decode">;
  /** The last piece given out, and what has come since. */
  readonly #before: number[] = [];
  readonly #pending: number[] = [];

  constructor(tokenizer: Pick<Tokenizer, "decode">) {
    this.#tokenizer = tokenizer;
  }

  /** The text that `token` completes; empty while a character is unfinished. */
  push(token: number): string {
    this.#pending.push(token);
    const text = this.#pendingText();
    if (text === "" || text.endsWith(unfinished)) return "";
    this.#advance();
    return text;
  }

  /** The text that is still held back; bytes that never became a character as U+FFFD. */
  flush(): string {
    const text = this.#pendingText();
    this.#advance();
    return text;
  }

  #pendingText(): string {
    const known = this.#tokenizer.decode(this.#before);
    return this.#tokenizer.decode([...this.#before, ...this.#pending]).slice(known.length);
  }

  #advance(): void {
    if (this.#pending.length === 0) return;
    this.#before.splice(0, this.#before.length, ...this.#pending.splice(0));
  }
}
