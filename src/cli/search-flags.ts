/** The options by which commands say how an index folder is searched. */

import { optionsFromOverrides } from "../config/validate.ts";
import type { SearchOptions } from "../retrieval/search-folder.ts";
import { searchOptionsSchema } from "../retrieval/search-folder.ts";
import type { OptionValues } from "./command.ts";

export const searchFlags = {
  mode: {
    type: "text",
    value: "MODE",
    doc: "bm25, dense or hybrid; default: hybrid where the index has vectors, else bm25.",
  },
  rerank: { type: "text", value: "MODEL", doc: "Score the best passages again with this cross-encoder." },
  encoder: {
    type: "text",
    value: "MODEL",
    doc: "Where the encoder is now; default: where it was when the index was made.",
  },
  approximate: { type: "flag", doc: "Search vectors through the graph, not one by one." },
  storage: { type: "text", value: "WHERE", doc: "memory or disk; default: in memory up to 256 MiB." },
  set: {
    type: "list",
    value: "KEY=VALUE",
    doc: "Another option, such as fusion.k=30 (fuse by rank) or rerank.depth=20; repeatable.",
  },
} as const;

/** The options of `openSearch`. Throws `ConfigError`. */
export function searchOptions(flags: OptionValues<typeof searchFlags>): SearchOptions {
  const { mode, rerank, encoder, approximate, storage, set } = flags;
  const words = [
    ...(mode === undefined ? [] : [`mode=${mode}`]),
    ...(storage === undefined ? [] : [`storage=${storage}`]),
    ...(rerank === undefined ? [] : [`rerank.model=${JSON.stringify(rerank)}`]),
    ...(encoder === undefined ? [] : [`encoder.model=${JSON.stringify(encoder)}`]),
    ...(approximate ? ["approximate=true"] : []),
  ];
  return optionsFromOverrides(searchOptionsSchema, [...words, ...set]);
}
