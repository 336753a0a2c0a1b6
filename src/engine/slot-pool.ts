/**
 * The slots of the decoding cache: which entry sits where, how many of its tokens the cache holds, and when the
 * cache grows or shrinks. A slot whose entry finished keeps its rows until another needs it, so that the next
 * turn of the same episode continues from there.
 */
import { assert } from "../errors.ts";
import type { CompletionJob } from "./completion-job.ts";
import type { Extension } from "./decoding-model.ts";
import { KeyValueCache } from "./key-value-cache.ts";
import type { ModelOptions } from "./model-options.ts";

interface Slot<Entry> {
  /** The tokens whose keys and values are cached. */
  cached: number[];
  episode: string | undefined;
  entry: Entry | undefined;
  job: CompletionJob | undefined;
  /** Turn of the pool when it was last in use. */
  usedAt: number;
}

/** Rows are added in steps of this many. */
const rowStep = 64;
/** A free slot is dropped when the cache shrinks unless its episode was active within this many calls. */
const retainedCalls = 8;

export class SlotPool<Entry> {
  readonly #model: ModelOptions;
  readonly #maxSlots: number;
  #cache: KeyValueCache;
  #slots: Slot<Entry>[] = [];
  #calls = 0;

  constructor(model: ModelOptions, maxSlots: number) {
    this.#model = model;
    this.#maxSlots = maxSlots;
    this.#cache = new KeyValueCache(model, 0, 0);
  }

  get cache(): KeyValueCache {
    return this.#cache;
  }

  get busyCount(): number {
    return this.#slots.filter(({ entry }) => entry !== undefined).length;
  }

  entries(): Entry[] {
    return this.#slots.flatMap(({ entry }) => (entry === undefined ? [] : [entry]));
  }

  /** Forgets everything that is cached. */
  clear(): void {
    this.#slots = [];
    this.#cache = new KeyValueCache(this.#model, 0, 0);
  }

  /** Gives entries a slot in order, growing or shrinking the cache; returns those that must wait. */
  admit(queue: readonly Entry[], jobOf: (entry: Entry) => CompletionJob): Entry[] {
    this.#fitSlots(queue.length);
    const own = new Map<string, number>();
    for (const [index, { entry, episode }] of this.#slots.entries()) {
      if (entry === undefined && episode !== undefined) own.set(episode, index);
    }
    const rest: Entry[] = [];
    // Episodes that come back take their own slot before newcomers choose among the others.
    const placed = queue.map((entry) => {
      const { episode } = jobOf(entry);
      const index = episode === undefined ? undefined : own.get(episode);
      if (episode === undefined || index === undefined) return false;
      this.#place(index, entry, jobOf(entry));
      own.delete(episode);
      return true;
    });
    for (const [position, entry] of queue.entries()) {
      if (placed[position]) continue;
      const index = this.#freeSlot();
      if (index === undefined) rest.push(entry);
      else this.#place(index, entry, jobOf(entry));
    }
    return rest;
  }

  /** For every busy slot the tokens that are not cached yet; at least one. */
  pending(): Extension[] {
    return this.#slots.flatMap(({ job, cached }, slot) =>
      job ? [{ slot, cached: cached.length, tokens: job.tokens.slice(cached.length) }] : [],
    );
  }

  /** Makes room for the rows that extensions will write. */
  reserve(extensions: readonly Extension[]): void {
    const rows = Math.max(...extensions.map(({ cached, tokens }) => cached + tokens.length));
    if (rows <= this.#cache.capacity) return;
    const capacity = Math.min(Math.ceil(rows / rowStep) * rowStep, this.#model.contextLength);
    this.#rebuild(
      this.#slots.map((_, slot) => slot),
      this.#cache.slots,
      capacity,
    );
  }

  /** Notes that an extension's rows are cached; returns the entry whose next token can now be sampled. */
  extended(extension: Extension): Entry | undefined {
    const slot = this.#slot(extension.slot);
    if (!slot.job || slot.cached.length !== extension.cached || extension.isIdle) return undefined;
    slot.cached.push(...extension.tokens);
    slot.usedAt = ++this.#calls;
    return slot.cached.length === slot.job.tokens.length ? slot.entry : undefined;
  }

  /** Frees a slot; its rows stay for the next turn of the episode. */
  release(index: number): void {
    const slot = this.#slot(index);
    slot.entry = undefined;
    slot.job = undefined;
  }

  releaseWhere(matches: (entry: Entry) => boolean): void {
    for (const [index, { entry }] of this.#slots.entries()) {
      if (entry !== undefined && matches(entry)) this.release(index);
    }
  }

  /** Changes the number of slots to what busy and queued entries need: up at once, down by halves. */
  #fitSlots(queued: number): void {
    const wanted = Math.min(this.busyCount + queued, this.#maxSlots);
    const { slots } = this.#cache;
    if (wanted > slots) {
      const kept = this.#slots.map((_, slot) => slot);
      this.#rebuild(kept, wanted, Math.max(this.#cache.capacity, 1));
    } else if (wanted > 0 && wanted <= slots / 2) {
      const kept = this.#slots.flatMap(({ entry, usedAt }, slot) =>
        entry !== undefined || this.#calls - usedAt < retainedCalls * slots ? [slot] : [],
      );
      const count = Math.max(wanted, kept.length);
      if (count <= slots / 2) this.#rebuild(kept, count, this.#cache.capacity);
    }
  }

  /** Moves the kept slots, in order, into a cache of another size. */
  #rebuild(kept: readonly number[], slots: number, capacity: number): void {
    const cache = new KeyValueCache(this.#model, slots, capacity);
    const moved = kept.map((slot) => this.#slot(slot));
    for (const [to, from] of kept.entries()) {
      cache.copySlot(this.#cache, from, to, this.#slot(from).cached.length);
    }
    const empty = (): Slot<Entry> => ({
      cached: [],
      episode: undefined,
      entry: undefined,
      job: undefined,
      usedAt: 0,
    });
    this.#slots = Array.from({ length: slots }, (_, slot) => moved[slot] ?? empty());
    this.#cache = cache;
  }

  /** The free slot that was idle longest. */
  #freeSlot(): number | undefined {
    let best: number | undefined;
    for (const [index, { entry, usedAt }] of this.#slots.entries()) {
      if (entry !== undefined) continue;
      if (best === undefined || usedAt < this.#slot(best).usedAt) best = index;
    }
    return best;
  }

  /** Keeps the rows that the new tokens share with what is cached; at least one token is left to run. */
  #place(index: number, entry: Entry, job: CompletionJob): void {
    const slot = this.#slot(index);
    const limit = Math.min(slot.cached.length, job.tokens.length - 1);
    let shared = 0;
    while (shared < limit && slot.cached[shared] === job.tokens[shared]) shared++;
    slot.cached.length = shared;
    slot.episode = job.episode;
    slot.entry = entry;
    slot.job = job;
  }

  #slot(index: number): Slot<Entry> {
    const slot = this.#slots[index];
    assert(slot, `the cache has no slot ${index}`);
    return slot;
  }
}
