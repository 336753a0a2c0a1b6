/**
 * The slots of the decoding cache: which entry sits where, how many of its tokens the cache holds, and when the
 * cache grows or shrinks. A slot whose entry finished keeps its rows until another needs it, so that the next
 * turn of the same episode continues from there. Beginnings that several contexts share are computed in one slot;
 * the others are held back until they can be copied.
 *
 * Room for all tokens an entry may come to have is set aside when it gets a slot: an entry that runs never waits for memory.
 */
import { assert } from "../errors.ts";
import { CacheBudget, steppedRows } from "./cache-budget.ts";
import type { CompletionJob } from "./completion-job.ts";
import type { Extension } from "./decoding-model.ts";
import { KeyValueCache } from "./key-value-cache.ts";
import type { ModelOptions } from "./model-options.ts";
import { sharedBeginning } from "./shared-beginning.ts";
import { longestIdle, reservedRows, Slot } from "./slot.ts";

interface Candidate<Entry> {
  readonly entry: Entry;
  readonly job: CompletionJob;
  /** The slot that its episode left. */
  readonly own: Slot<Entry> | undefined;
}

/** A free slot is dropped when the cache shrinks unless its episode was active within this many calls. */
const retainedCalls = 8;

export class SlotPool<Entry> {
  readonly budget: CacheBudget;
  readonly #model: ModelOptions;
  readonly #maxSlots: number;
  #cache: KeyValueCache;
  #slots: Slot<Entry>[] = [];
  #calls = 0;

  constructor(
    model: ModelOptions,
    { maxSlots, cacheMemory }: { readonly maxSlots: number; readonly cacheMemory: number },
  ) {
    this.#model = model;
    this.#maxSlots = maxSlots;
    this.budget = new CacheBudget(model, cacheMemory);
    this.#cache = new KeyValueCache(model, 0, 0);
  }

  get cache(): KeyValueCache {
    return this.#cache;
  }

  get busyCount(): number {
    return this.#slots.filter(({ entry }) => entry !== undefined).length;
  }

  /** Rows of a slot that are in use, whether its entry is busy or left. */
  cachedRows(slot: number): number {
    return this.#slot(slot).cached.length;
  }

  entries(): Entry[] {
    return this.#slots.flatMap(({ entry }) => (entry === undefined ? [] : [entry]));
  }

  /** Forgets everything that is cached. */
  clear(): void {
    this.#slots = [];
    this.#cache.release();
    this.#cache = new KeyValueCache(this.#model, 0, 0);
  }

  /**
   * Gives entries a slot, growing or shrinking the cache; returns those that must wait. Episodes that come back are first,
   * and take their own slot; newcomers, in order, take those that were idle longest.
   */
  admit(queue: readonly Entry[], jobOf: (entry: Entry) => CompletionJob): Entry[] {
    const candidates = this.#candidates(queue, jobOf);
    const admitted = candidates.slice(0, this.#admissible(candidates));
    for (const { own, job } of admitted) own?.keepShared(job);
    this.#fitSlots(admitted);
    for (const candidate of admitted) this.#place(candidate.own ?? this.#freeSlot(), candidate);
    const placed = new Set(admitted.map(({ entry }) => entry));
    return queue.filter((entry) => !placed.has(entry));
  }

  /** For every busy slot that is not held back the tokens that are not cached yet; at least one. */
  pending(): Extension[] {
    return this.#slots.flatMap(({ job, cached, awaited }, slot) =>
      job && !awaited ? [{ slot, cached: cached.length, tokens: job.tokens.slice(cached.length) }] : [],
    );
  }

  /** Makes room for the rows that extensions will write. */
  reserve(extensions: readonly Extension[]): void {
    const rows = Math.max(...extensions.map(({ cached, tokens }) => cached + tokens.length));
    if (rows <= this.#cache.capacity) return;
    const capacity = this.#capacityFor(this.#slots, { count: this.#slots.length, rows });
    this.#rebuild(this.#slots, this.#slots.length, capacity);
  }

  /** Notes that an extension's rows are cached; returns the entry whose next token can now be sampled. */
  extended(extension: Extension): Entry | undefined {
    const slot = this.#slot(extension.slot);
    if (!slot.job || slot.cached.length !== extension.cached || extension.isIdle) return undefined;
    slot.cached.push(...extension.tokens);
    slot.usedAt = ++this.#calls;
    for (const other of this.#slots) {
      const { awaited } = other;
      if (awaited?.neighbour === slot && awaited.rows <= slot.cached.length) this.#copyAwaited(other);
    }
    return slot.cached.length === slot.job.tokens.length ? slot.entry : undefined;
  }

  /** Frees a slot; its rows stay for the next turn of the episode, and for those who wait for them. */
  release(index: number): void {
    const slot = this.#slot(index);
    slot.entry = undefined;
    slot.job = undefined;
    slot.awaited = undefined;
    for (const other of this.#slots) if (other.awaited?.neighbour === slot) this.#copyAwaited(other);
  }

  releaseWhere(matches: (entry: Entry) => boolean): void {
    for (const [index, { entry }] of this.#slots.entries()) {
      if (entry !== undefined && matches(entry)) this.release(index);
    }
  }

  #candidates(queue: readonly Entry[], jobOf: (entry: Entry) => CompletionJob): Candidate<Entry>[] {
    const left = new Map<string, Slot<Entry>>();
    for (const slot of this.#slots) {
      if (slot.entry === undefined && slot.episode !== undefined) left.set(slot.episode, slot);
    }
    const candidates = queue.map((entry) => {
      const job = jobOf(entry);
      const own = left.get(job.episode ?? "");
      if (own) left.delete(job.episode ?? "");
      return { entry, job, own };
    });
    return [...candidates.filter(({ own }) => own), ...candidates.filter(({ own }) => !own)];
  }

  /** How many of the candidates, from the first on, find slots and memory beside those that are busy. */
  #admissible(candidates: readonly Candidate<Entry>[]): number {
    let rows = reservedRows(this.#slots.filter(({ job }) => job));
    let slots = this.busyCount;
    for (const [count, { job }] of candidates.entries()) {
      rows = Math.max(rows, job.mostTokens);
      slots++;
      if (slots > this.#maxSlots || !this.budget.fits(slots, rows)) return count;
    }
    return candidates.length;
  }

  /** Changes the number of slots to what busy and admitted entries need: up at once, down by halves, or as memory says. */
  #fitSlots(admitted: readonly Candidate<Entry>[]): void {
    const wanted = this.busyCount + admitted.length;
    if (wanted === 0) return;
    const own = new Set(admitted.map((candidate) => candidate.own));
    const isNeeded = (slot: Slot<Entry>): boolean => slot.entry !== undefined || own.has(slot);
    const longest = Math.max(0, ...admitted.map(({ job }) => job.mostTokens));
    let kept: readonly Slot<Entry>[] = this.#slots;
    if (wanted <= kept.length / 2) {
      const alive = kept.filter(
        (slot) => isNeeded(slot) || this.#calls - slot.usedAt < retainedCalls * kept.length,
      );
      if (Math.max(wanted, alive.length) <= kept.length / 2) kept = alive;
    }
    const size = (): number => Math.max(wanted, kept.length);
    while (!this.budget.fits(size(), Math.max(longest, reservedRows(kept)))) {
      const idle = longestIdle(kept.filter((slot) => !isNeeded(slot)));
      assert(idle, `${wanted} sequences do not fit into ${this.budget.tokens} tokens`);
      kept = kept.filter((slot) => slot !== idle);
    }
    const rows = Math.max(1, this.#cache.capacity);
    const limit = Math.max(longest, reservedRows(kept));
    const capacity = this.budget.fits(size(), rows) ? rows : Math.min(rows, limit);
    if (size() !== this.#cache.slots || capacity !== rows) this.#rebuild(kept, size(), capacity);
  }

  /** Capacity for `rows`: in large steps where memory is left, else no more than what is set aside. */
  #capacityFor(
    slots: readonly Slot<Entry>[],
    { count, rows }: { readonly count: number; readonly rows: number },
  ): number {
    const stepped = steppedRows(this.#model, rows);
    return this.budget.fits(count, stepped) ? stepped : Math.max(rows, reservedRows(slots));
  }

  /** Moves the kept slots, in order, into a cache of another size. */
  #rebuild(kept: readonly Slot<Entry>[], count: number, capacity: number): void {
    const moves = kept.map((slot) => ({ slot: this.#slots.indexOf(slot), rows: slot.cached.length }));
    this.#cache = this.#cache.moved(moves, { slots: count, capacity });
    this.#slots = Array.from({ length: count }, (_, slot) => kept[slot] ?? new Slot<Entry>());
  }

  #freeSlot(): Slot<Entry> {
    const slot = longestIdle(this.#slots.filter(({ entry }) => entry === undefined));
    assert(slot, "an entry was admitted without a free slot");
    return slot;
  }

  #place(slot: Slot<Entry>, { entry, job }: Candidate<Entry>): void {
    slot.keepShared(job);
    slot.episode = job.episode;
    slot.entry = entry;
    slot.job = job;
    const others = this.#slots.filter((other) => other !== slot);
    slot.awaited = sharedBeginning(job.tokens, slot.cached.length, others);
    const { awaited } = slot;
    if (awaited && awaited.rows <= awaited.neighbour.cached.length) this.#copyAwaited(slot);
  }

  /** Takes over what its neighbour has of the awaited rows. */
  #copyAwaited(slot: Slot<Entry>): void {
    const { awaited, job } = slot;
    assert(awaited && job, "a slot without an entry waits for rows");
    slot.awaited = undefined;
    const rows = Math.min(awaited.rows, awaited.neighbour.cached.length);
    if (rows <= slot.cached.length) return;
    const [from, to] = [this.#slots.indexOf(awaited.neighbour), this.#slots.indexOf(slot)];
    this.#cache.copySlot(from, to, rows);
    slot.cached = job.tokens.slice(0, rows);
    awaited.neighbour.usedAt = this.#calls;
  }

  #slot(index: number): Slot<Entry> {
    const slot = this.#slots[index];
    assert(slot, `the cache has no slot ${index}`);
    return slot;
  }
}
