/**
 * Text to token ids with a `tokenizer.json` of Hugging Face, by their JavaScript library. Padding and truncation
 * that the file may switch on (many stop at 128 tokens) are not applied: a text is cut here to the length that the
 * model allows, with its special tokens kept. Which special tokens surround a text or a pair is read off a probe.
 */
import { readFile } from "node:fs/promises";
import { setImmediate } from "node:timers/promises";
import type { Tokenizer } from "@huggingface/tokenizers";
import { FileError } from "../../errors.ts";
import { fileError } from "../../shared/files.ts";
import { sha256 } from "../../shared/hash.ts";

/** One input of a model: ids and, for pairs, which text each id belongs to (0 or 1). */
export interface TokenSequence {
  readonly ids: readonly number[];
  /** Absent: all 0. */
  readonly types?: readonly number[];
}

/** Words and spaces beyond this many characters for each allowed token are not looked at: no text of real words is that thin. */
const CHARACTERS_PER_TOKEN = 64;

export class TokenIds {
  /** SHA-256 of the file. */
  readonly hash: string;
  readonly #tokenizer: Tokenizer;
  readonly #maxTokens: number;
  readonly #single: readonly (readonly number[])[];
  readonly #pair: readonly (readonly number[])[];
  readonly #secondType: number;

  private constructor(tokenizer: Tokenizer, hash: string, maxTokens: number) {
    this.hash = hash;
    this.#tokenizer = tokenizer;
    this.#maxTokens = maxTokens;
    const [a, b] = [this.#plain("a"), this.#plain("b")];
    const pair = tokenizer.encode("a", { text_pair: "b", return_token_type_ids: true });
    this.#single = around(tokenizer.encode("a").ids, [a]);
    this.#pair = around(pair.ids, [a, b]);
    this.#secondType = pair.token_type_ids.at(-1) ?? 0;
  }

  /** Reads `path` (a `tokenizer.json`). Throws `FileError` when it is missing or cannot be used. */
  static async open(path: string, maxTokens: number): Promise<TokenIds> {
    const { Tokenizer } = await import("@huggingface/tokenizers");
    let text: string;
    try {
      text = await readFile(path, "utf8");
    } catch (cause) {
      throw fileError(`cannot read the tokenizer ${path}`, cause);
    }
    try {
      return new TokenIds(new Tokenizer(JSON.parse(text) as object, {}), sha256(text), maxTokens);
    } catch (cause) {
      throw new FileError(
        `${path} is no tokenizer that Forager can use (${(cause as Error).message}); expected a tokenizer.json of Hugging Face`,
        { cause },
      );
    }
  }

  /** A text with its special tokens, at most `maxTokens` ids. */
  encode(text: string): TokenSequence {
    const [before = [], after = []] = this.#single;
    const room = this.#maxTokens - before.length - after.length;
    return { ids: [...before, ...this.#plain(text).slice(0, Math.max(0, room)), ...after] };
  }

  /** Many texts; other work gets a turn now and then. Throws the signal's reason. */
  async encodeAll(texts: readonly string[], signal?: AbortSignal): Promise<TokenSequence[]> {
    return inTurns(texts, (text) => this.encode(text), signal);
  }

  /** Two texts as one sequence; what is too long is cut, the first text to half of the room at most. */
  encodePair(first: string, second: string): TokenSequence {
    const [before = [], between = [], after = []] = this.#pair;
    const room = Math.max(0, this.#maxTokens - before.length - between.length - after.length);
    const b = this.#plain(second);
    const a = this.#plain(first).slice(0, Math.max(room >> 1, room - b.length));
    const head = [...before, ...a, ...between];
    const tail = [...b.slice(0, room - a.length), ...after];
    const types = [...head.map(() => 0), ...tail.map(() => this.#secondType)];
    return { ids: [...head, ...tail], types };
  }

  #plain(text: string): number[] {
    const most = this.#maxTokens * CHARACTERS_PER_TOKEN;
    const shown = text.length > most ? text.slice(0, most) : text;
    return this.#tokenizer.encode(shown, { add_special_tokens: false }).ids;
  }
}

/** How many texts are encoded before other work gets a turn. */
const TEXTS_PER_TURN = 64;

/** `values.map(change)` that lets other work have a turn and an abort be noticed. */
export async function inTurns<T, U>(
  values: readonly T[],
  change: (value: T) => U,
  signal?: AbortSignal,
): Promise<U[]> {
  const results: U[] = [];
  for (const value of values) {
    results.push(change(value));
    if (results.length % TEXTS_PER_TURN > 0) continue;
    await setImmediate();
    signal?.throwIfAborted();
  }
  return results;
}

/** The special tokens before, between and after the inner sequences. */
function around(whole: readonly number[], inner: readonly (readonly number[])[]): number[][] {
  const parts: number[][] = [];
  let from = 0;
  for (const ids of inner) {
    const at = indexOfSequence(whole, ids, from);
    if (at < 0) throw new Error("its special tokens change the text between them");
    parts.push(whole.slice(from, at));
    from = at + ids.length;
  }
  return [...parts, whole.slice(from)];
}

function indexOfSequence(whole: readonly number[], part: readonly number[], from: number): number {
  for (let at = from; at + part.length <= whole.length; at++)
    if (part.every((id, i) => whole[at + i] === id)) return at;
  return -1;
}
