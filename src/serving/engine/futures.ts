/**
 * Futures: what was promised to clients and what came of it. Each is written down before its client hears of it, and its
 * outcome before anyone can ask for it, so that neither a lost answer nor a killed server makes work run twice or a
 * number mean something else. An outcome may be read again until its part of the journal is removed.
 */
import { z } from "zod";
import { FileError } from "../../errors.ts";
import { HttpError } from "../http-error.ts";
import { Journal, type JournalLimits, type Place } from "./journal.ts";
import { type Patience, within } from "./patience.ts";

/** What a client asked for. */
export interface Request {
  /** The path of the call. */
  readonly kind: string;
  /** Equal bodies, equal hashes. */
  readonly hash: string;
  /** Names under which the same request is known, such as a model and its number; one that is known is not run again. */
  readonly keys: readonly string[];
  /** What is answered at once beside the number of the future. */
  readonly acknowledgement: Readonly<Record<string, unknown>>;
}

/** Why a future failed; `server`: asking again later may help. */
export type FailureCategory = "user" | "server";

interface Entry extends Request {
  readonly id: string;
  /** JSON of the answer; undefined: it is on disk alone. */
  text: string | undefined;
  place: Place | undefined;
  accepted: Promise<unknown>;
  /** Resolves when it is done; undefined once it is. */
  done: Promise<void> | undefined;
  finish: () => void;
}

/** Bytes of outcomes that are kept in memory as well. */
const cacheBytes = 16 * 2 ** 20;

const lineSchema = z.looseObject({
  id: z.string(),
  kind: z.string(),
  hash: z.string(),
  keys: z.array(z.string()),
  acknowledgement: z.record(z.string(), z.unknown()),
});

export class Futures {
  readonly #entries = new Map<string, Entry>();
  readonly #byKey = new Map<string, Entry>();
  readonly #cached = new Map<string, number>();
  #cachedBytes = 0;
  #last = 0;
  #pending = 0;
  #journal: Journal | undefined;

  /** Opens the journal in `folder`. What had not ended when the server did is failed, or forgotten where it can be asked anew. Throws `FileError`. */
  static async open(
    folder: string,
    {
      limits,
      isRepeatable,
    }: { readonly limits: JournalLimits; readonly isRepeatable: (kind: string) => boolean },
  ): Promise<Futures> {
    const futures = new Futures();
    futures.#journal = await Journal.open(folder, {
      limits,
      onLine: (line, place) => futures.#restore(line, place, folder),
      onDropped: (segment) => futures.#drop(segment),
    });
    for (const entry of [...futures.#entries.values()]) {
      if (entry.done === undefined) continue;
      if (isRepeatable(entry.kind)) futures.#forget(entry);
      else
        await futures.fail(
          entry.id,
          `the server was restarted before ${entry.kind} had ended, and with it went what its models had in memory; create a model and load a checkpoint`,
          "server",
        );
    }
    return futures;
  }

  /** How many have not ended. */
  get pending(): number {
    return this.#pending;
  }

  /**
   * The future of a request: a new one, or that of the same request that came before. Throws `HttpError` (409) for
   * another request under a known key, `FileError` when it cannot be written down.
   */
  async accept(request: Request): Promise<{ readonly id: string; readonly isNew: boolean }> {
    const known = this.known(request);
    if (known !== undefined) {
      await known.accepted;
      return { id: known.id, isNew: false };
    }
    const id = String(++this.#last);
    const accepted = (this.#journal as Journal).append(JSON.stringify({ id, ...request }));
    const entry = this.#add(id, request, accepted);
    try {
      await accepted;
    } catch (error) {
      this.#forget(entry);
      throw error;
    }
    return { id, isNew: true };
  }

  /** The entry of the same request that came before. Throws as `accept`. */
  known({ keys, hash, kind }: Pick<Request, "keys" | "hash" | "kind">): Entry | undefined {
    let found: Entry | undefined;
    for (const key of keys) {
      const entry = this.#byKey.get(key);
      if (entry === undefined) continue;
      if (entry.hash !== hash || entry.kind !== kind) throw reused(`${key} (${entry.kind})`);
      found ??= entry;
    }
    return found;
  }

  /** What a client is told at once. */
  acknowledgement(id: string): Readonly<Record<string, unknown>> {
    const entry = this.#entries.get(id);
    const isPending = entry?.acknowledgement.status === "pending";
    return { ...entry?.acknowledgement, ...(isPending && { future_id: id }), request_id: id };
  }

  async complete(id: string, answer: unknown): Promise<void> {
    await this.#finish(id, JSON.stringify(answer));
  }

  async fail(id: string, error: string, category: FailureCategory): Promise<void> {
    await this.#finish(id, JSON.stringify({ error, category }));
  }

  /**
   * JSON of the answer; undefined where it has not come within the patience. Throws `HttpError`: 404 for a number that was
   * never given, 410 for one whose answer is not kept any more; and the reason of `patience.client` when that aborts.
   */
  async answer(id: string, patience: Patience): Promise<string | undefined> {
    const entry = this.#entries.get(id);
    if (entry === undefined) throw this.#unknown(id);
    if (entry.done !== undefined) {
      await within(entry.done, patience);
      if (entry.done !== undefined) return undefined;
    }
    if (entry.text !== undefined) return entry.text;
    if (entry.place === undefined) throw this.#unknown(id);
    return await (this.#journal as Journal).read(entry.place);
  }

  async close(): Promise<void> {
    await this.#journal?.close();
  }

  #unknown(id: string): HttpError {
    if (/^\d{1,15}$/.test(id) && Number(id) >= 1 && Number(id) <= this.#last)
      return new HttpError(410, {
        expected: "a future that is kept",
        got: `${id}, whose answer is not kept any more or was lost with a restart`,
        advice: "send the request again under a new number",
      });
    return new HttpError(404, {
      expected: "the number of a future",
      got: JSON.stringify(id.slice(0, 60)),
      advice: "use a request_id that this server gave",
    });
  }

  #add(id: string, request: Request, accepted: Promise<unknown>): Entry {
    let finish: () => void = () => undefined;
    const done = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const entry: Entry = { id, ...request, accepted, done, finish, text: undefined, place: undefined };
    this.#entries.set(id, entry);
    for (const key of request.keys) this.#byKey.set(key, entry);
    this.#pending++;
    return entry;
  }

  async #finish(id: string, text: string): Promise<void> {
    const entry = this.#entries.get(id);
    if (entry?.done === undefined) return;
    const { kind, hash, keys, acknowledgement } = entry;
    const head = JSON.stringify({ id, kind, hash, keys, acknowledgement }).slice(0, -1);
    try {
      const { segment, offset } = await (this.#journal as Journal).append(`${head},"answer":${text}}`);
      entry.place = { segment, ...partOf(offset, head, text) };
    } catch (error) {
      // Without a disk it is kept in memory, where nothing removes it.
      if (!(error instanceof FileError)) throw error;
    }
    entry.text = text;
    this.#end(entry);
    if (entry.place !== undefined) this.#cache(entry, text);
  }

  #end(entry: Entry): void {
    if (entry.done === undefined) return;
    entry.done = undefined;
    this.#pending--;
    entry.finish();
    // Thousands of these stay: they hold no more than they must.
    entry.finish = nothing;
    entry.accepted = settled;
  }

  /** Keeps the newest answers in memory. */
  #cache(entry: Entry, text: string): void {
    this.#cached.set(entry.id, text.length);
    this.#cachedBytes += text.length;
    for (const [id, length] of this.#cached) {
      if (this.#cachedBytes <= cacheBytes) break;
      this.#cached.delete(id);
      this.#cachedBytes -= length;
      const old = this.#entries.get(id);
      if (old !== undefined) old.text = undefined;
    }
  }

  #restore(line: string, place: Place, folder: string): void {
    const parsed = lineSchema.safeParse(parseLine(line));
    if (!parsed.success)
      throw new FileError(
        `${folder} holds a line that is none of this journal's (segment ${place.segment}, byte ${place.offset}); remove the folder, or name another with --state`,
      );
    const { id, kind, hash, keys, acknowledgement } = parsed.data;
    const entry =
      this.#entries.get(id) ?? this.#add(id, { kind, hash, keys, acknowledgement }, Promise.resolve());
    this.#last = Math.max(this.#last, Number(id));
    if (!("answer" in parsed.data)) return;
    const head = JSON.stringify({ id, kind, hash, keys, acknowledgement }).slice(0, -1);
    const text = Buffer.byteLength(line) - Buffer.byteLength(head) - answerKey.length - 1;
    entry.place = {
      segment: place.segment,
      offset: place.offset + Buffer.byteLength(head) + answerKey.length,
      bytes: text,
    };
    this.#end(entry);
  }

  #drop(segment: number): void {
    for (const entry of [...this.#entries.values()])
      if (entry.done === undefined && entry.place !== undefined && entry.place.segment <= segment)
        this.#forget(entry);
  }

  #forget(entry: Entry): void {
    this.#end(entry);
    this.#entries.delete(entry.id);
    for (const key of entry.keys) if (this.#byKey.get(key) === entry) this.#byKey.delete(key);
    this.#cachedBytes -= this.#cached.get(entry.id) ?? 0;
    this.#cached.delete(entry.id);
  }
}

/** For another request under a known name. */
export function reused(name: string): HttpError {
  return new HttpError(409, {
    expected: `the same request again under ${name}`,
    got: "another one",
    advice: "give every request a number of its own",
  });
}

const nothing = (): void => undefined;
const settled = Promise.resolve();

const answerKey = ',"answer":';

/** Where an answer lies within its line, which starts at `offset`. */
function partOf(offset: number, head: string, text: string): { offset: number; bytes: number } {
  return {
    offset: offset + Buffer.byteLength(head) + answerKey.length,
    bytes: Buffer.byteLength(text),
  };
}

function parseLine(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
