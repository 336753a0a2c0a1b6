/** Opens the retriever of a recipe, whatever its kind, with what must be closed and told about it. */
import type { Recipe } from "../config/recipe.ts";
import type { RetrieverOptions } from "../config/retriever-options.ts";
import { corpusHasher } from "../corpus/corpus-hash.ts";
import { describeReport, newCorpusReport } from "../corpus/corpus-report.ts";
import type { Passage } from "../corpus/passage.ts";
import { readCorpora } from "../corpus/read-corpora.ts";
import { readingOptions } from "../corpus/reading-options.ts";
import { ConfigError } from "../errors.ts";
import { openEncoderReference } from "../retrieval/encoder-reference.ts";
import { storageOf } from "../retrieval/lance/lance-options.ts";
import { lanceRetriever } from "../retrieval/lance/lance-retriever.ts";
import { type Bm25Index, buildBm25Index } from "../retrieval/lexical/bm25.ts";
import type { PassageStore } from "../retrieval/passage-store.ts";
import { recordRetriever } from "../retrieval/recording/record-retriever.ts";
import { replayRetriever } from "../retrieval/recording/replay-retriever.ts";
import { createRemoteRetriever } from "../retrieval/remote/remote-retriever.ts";
import type { Retriever } from "../retrieval/retriever.ts";
import { openSearch } from "../retrieval/search-folder.ts";
import { createSimulatedRetriever } from "../retrieval/simulated/simulated-retriever.ts";
import { createWebRetriever } from "../retrieval/web/web-retriever.ts";
import type { Closers } from "../shared/closers.ts";
import type { World } from "./world.ts";
import { writingModel } from "./writing-model.ts";

export interface OpenedRetriever {
  readonly retriever: Retriever;
  /** All that can be found, where it is at hand. */
  readonly passages?: PassageStore | undefined;
  /** The index of words, where that is the whole retriever. */
  readonly index?: Bm25Index | undefined;
  /** Told before each step of a reinforcement stage, for retrievers that change while they are trained with. */
  readonly onStep?: ((step: number) => void) | undefined;
}

/** What a retriever is opened with. */
export interface RetrieverSetting {
  readonly world: World;
  /** Gets what must be closed in the end. */
  readonly opened: Closers;
  /** The passages of a built-in world; files are read where they are needed. */
  readonly passages?: readonly Passage[] | undefined;
}

/**
 * Opens `recipe.retriever`, recording where the recipe says so. Throws `ConfigError`, `DataFormatError`, `FileError` and
 * `RetrieverError` as the kinds do.
 */
export async function openRetriever(
  recipe: Pick<Recipe, "retriever" | "data" | "recordRetrieval" | "engine">,
  setting: RetrieverSetting,
): Promise<OpenedRetriever> {
  const found = await openKind(recipe, setting);
  if (recipe.recordRetrieval === undefined) return found;
  const recording = await recordRetriever(found.retriever, recipe.recordRetrieval);
  setting.opened.defer(() => recording.close());
  return { ...found, retriever: recording };
}

async function openKind(
  recipe: Pick<Recipe, "retriever" | "data" | "engine">,
  { world, opened, passages }: RetrieverSetting,
): Promise<OpenedRetriever> {
  const { retriever: options, data } = recipe;
  switch (options.type) {
    case "bm25": {
      const { type: _, ...settings } = options;
      const index = await buildBm25Index(passages ?? corpusOf(data, world), settings);
      return { retriever: index, passages: index.parts.passages, index };
    }
    case "index":
      return await openFolder(options, { world, opened, hash: await hashOf(data, { world, passages }) });
    case "lance":
      return { retriever: await openLance(options, { world, opened }) };
    case "remote":
      return { retriever: await openRemote(options, world) };
    case "web":
      return { retriever: createWebRetriever(options, world) };
    case "simulated": {
      const { model, temperature, maxTokens, ...rest } = options;
      const simulator = await writingModel(model, { temperature, maxTokens, engine: recipe.engine });
      opened.defer(() => simulator.close());
      const retriever = createSimulatedRetriever(rest, simulator);
      return { retriever, onStep: (step) => retriever.setStep(step) };
    }
    case "replay":
      return { retriever: await replayRetriever(options.file) };
  }
}

/** Most servers of the field say nothing of their health; one search says that they are up and speak the dialect. */
async function openRemote(
  options: Extract<RetrieverOptions, { type: "remote" }>,
  world: World,
): Promise<Retriever> {
  const retriever = await createRemoteRetriever(options, world);
  if (options.healthCheck) await retriever.retrieve(["the capital of a country"], 1);
  return retriever;
}

async function openFolder(
  { type: _, path, ...options }: Extract<RetrieverOptions, { type: "index" }>,
  { world, opened, hash }: RetrieverSetting & { readonly hash: string | undefined },
): Promise<OpenedRetriever> {
  const search = await openSearch(
    path,
    { ...options, ...(hash !== undefined && { corpusHash: hash }) },
    world,
  );
  opened.defer(() => search.close());
  return { retriever: search.retriever, passages: search.index.parts.passages };
}

async function openLance(
  { type: _, encoder: reference, uri, storage, ...options }: Extract<RetrieverOptions, { type: "lance" }>,
  { world, opened }: RetrieverSetting,
): Promise<Retriever> {
  if (options.mode !== "bm25" && reference === undefined)
    throw new ConfigError(`mode ${options.mode} needs the encoder that the table was built with`, {
      path: "retriever.encoder",
    });
  if (options.mode === "bm25" && reference !== undefined)
    throw new ConfigError(
      "mode bm25 ranks by words and needs no encoder; leave it out, or choose dense or hybrid",
      {
        path: "retriever.encoder",
      },
    );
  const encoder =
    options.mode === "bm25" || reference === undefined
      ? undefined
      : await openEncoderReference(reference, world);
  if (encoder !== undefined) opened.defer(() => encoder.close());
  const retriever = await lanceRetriever(uri, {
    ...options,
    storage: storageOf(storage, (name) => world.keys[name]),
    ...(encoder !== undefined && { encoder }),
  });
  opened.defer(() => retriever.close());
  return retriever;
}

/** The passages of the recipe's files. What is left out is said, where reading is not strict. */
export async function* corpusOf(
  data: Recipe["data"],
  { note }: Pick<World, "note">,
): AsyncGenerator<Passage> {
  if (data.type !== "files" || data.corpus === undefined)
    throw new ConfigError("retriever.type bm25 is built from a corpus; name one", { path: "data.corpus" });
  const report = newCorpusReport();
  const paths = typeof data.corpus === "string" ? [data.corpus] : data.corpus;
  yield* readCorpora(paths, { ...readingOptions(data.reading), report });
  if (!data.reading.strict) for (const line of describeReport(report)) note(line);
}

/** The hash of the recipe's corpus, where it names one: an index must be of it. */
async function hashOf(
  data: Recipe["data"],
  { world, passages }: Pick<RetrieverSetting, "world" | "passages">,
): Promise<string | undefined> {
  if (passages === undefined && (data.type !== "files" || data.corpus === undefined)) return undefined;
  const hasher = corpusHasher();
  for await (const passage of passages ?? corpusOf(data, world)) hasher.add(passage);
  return hasher.digest();
}
