/** Whatever a user names as an index, opened for searching: a folder made by `forager index`, or a LanceDB table. */
import type { Passage } from "../corpus/passage.ts";
import type { PassageStore } from "../retrieval/passage-store.ts";
import type { Reranker } from "../retrieval/rerank.ts";
import type { Retriever } from "../retrieval/retriever.ts";
import { openSearch } from "../retrieval/search-folder.ts";
import type { Closers } from "../shared/closers.ts";
import { processWorld } from "../training/world.ts";
import type { CommandIo } from "./command.ts";
import { isLancePlace, openLance } from "./lance-table.ts";
import { searchOptions } from "./search-flags.ts";

export interface OpenedPlace {
  readonly retriever: Retriever;
  /** How many passages there are. */
  readonly passages: number;
  /** Passages by position and by id; a LanceDB table has neither. */
  readonly store?: PassageStore;
  readonly passageById?: (id: string) => Passage | undefined;
  readonly reranker?: Reranker | undefined;
  /** See `OpenedSearch`. */
  readonly remarkOn?: ((query: string) => string | undefined) | undefined;
}

/** Opens `place`; what must be closed in the end goes to `opened`. Throws what `openSearch` and `openLance` throw. */
export async function openPlace(
  place: string,
  flags: Parameters<typeof searchOptions>[0],
  { io, opened }: { readonly io: CommandIo; readonly opened: Closers },
): Promise<OpenedPlace> {
  const options = searchOptions(flags);
  if (await isLancePlace(place)) {
    const retriever = await openLance(place, options, { io, opened });
    return { retriever, passages: retriever.manifest.count };
  }
  const search = await openSearch(place, options, processWorld(io));
  opened.defer(() => search.close());
  const { retriever, index, reranker, remarkOn } = search;
  const store = index.parts.passages;
  const passageById = (id: string): Passage | undefined => index.passageById(id);
  return { retriever, passages: store.count, store, passageById, reranker, remarkOn };
}
