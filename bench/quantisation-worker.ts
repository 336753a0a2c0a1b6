/**
 * Our side of the quantisation benchmark: one model, sampled with weights of several precisions. Weights are read once;
 * each precision has its own session.
 */
import { readFile } from "node:fs/promises";
import { performance } from "node:perf_hooks";
import { DecodingModel } from "../src/engine/decoding-model.ts";
import { EmbeddedPolicy } from "../src/engine/embedded-policy.ts";
import { KeyValueCache } from "../src/engine/key-value-cache.ts";
import { openModelFiles } from "../src/engine/model-files.ts";
import { bitsOf, type SamplingWeights } from "../src/engine/weight-quantization.ts";
import type { Tokenizer } from "../src/tokenizer/tokenizer.ts";
import { answerRequests } from "./answer-requests.ts";

type Request =
  | { readonly op: "prepare"; readonly model: string; readonly text: string; readonly threads: number }
  | { readonly op: "ids" }
  | {
      readonly op: "loss";
      readonly weights: SamplingWeights;
      readonly windows: number;
      readonly length: number;
    }
  | {
      readonly op: "decode";
      readonly weights: SamplingWeights;
      readonly batch: number;
      readonly prompt: number;
      readonly tokens: number;
    };

interface Prepared {
  readonly tokenizer: Tokenizer;
  /** The text as ids. */
  readonly ids: readonly number[];
  readonly models: ReadonlyMap<SamplingWeights, DecodingModel>;
}

let prepared: Prepared | undefined;

async function prepare(request: Extract<Request, { op: "prepare" }>): Promise<object> {
  const files = await openModelFiles(request.model);
  const tokenizer = await files.readTokenizer();
  const parameters = await files.readParameters();
  const open = (weights: SamplingWeights): [SamplingWeights, DecodingModel] => [
    weights,
    new DecodingModel(files.model, async () => parameters, {
      threads: request.threads,
      bits: bitsOf(weights),
    }),
  ];
  const text = await readText(request.text);
  prepared = {
    // No id ends a completion, so that all sides decode as many.
    tokenizer: { ...plain(tokenizer), endOfTextId: -1 },
    ids: tokenizer.encode(text),
    models: new Map([open("f32"), open("int8"), open("int4")]),
  };
  await files.close();
  return { tokens: prepared.ids.length };
}

/** Without further ids that end a text; methods of a tokenizer may lie on its class. */
function plain(tokenizer: Tokenizer): Tokenizer {
  return {
    hash: tokenizer.hash,
    vocabularySize: tokenizer.vocabularySize,
    endOfTextId: tokenizer.endOfTextId,
    paddingId: tokenizer.paddingId,
    specialTokens: tokenizer.specialTokens,
    encode: (text) => tokenizer.encode(text),
    decode: (ids) => tokenizer.decode(ids),
  };
}

/** The passages of a JSON Lines file, or a text file as it is; no more than the benchmark needs. */
async function readText(path: string): Promise<string> {
  const content = await readFile(path, "utf8");
  if (!path.endsWith(".jsonl")) return content.slice(0, 200_000);
  const lines = content.split("\n").slice(0, 200);
  return lines
    .map((line) => (line === "" ? "" : (JSON.parse(line) as { contents: string }).contents))
    .join("\n\n");
}

function state(): Prepared {
  if (!prepared) throw new Error("prepare comes first");
  return prepared;
}

function modelOf(weights: SamplingWeights): DecodingModel {
  return state().models.get(weights) as DecodingModel;
}

/**
 * Reads windows of the text token by token with both weights, and compares what they say about each next token: the
 * absolute difference of its log-probability, and the divergence of the whole distributions.
 */
async function loss({ weights, windows, length }: Extract<Request, { op: "loss" }>): Promise<object> {
  const { ids, models } = state();
  const cut = Array.from({ length: windows }, (_, i) => ids.slice(i * (length + 1), (i + 1) * (length + 1)));
  if (cut.at(-1)?.length !== length + 1) throw new Error(`the text has only ${ids.length} tokens`);
  const exact = reader(models.get("f32") as DecodingModel, cut, length);
  const rounded = reader(modelOf(weights), cut, length);
  const sums = { difference: 0, divergence: 0, exactLoss: 0, roundedLoss: 0, agreed: 0 };
  for (let t = 0; t < length; t++) {
    const [p, q] = [await exact(t), await rounded(t)];
    const size = p.length / windows;
    for (const [i, window] of cut.entries()) {
      const next = i * size + (window[t + 1] as number);
      sums.difference += Math.abs((p[next] as number) - (q[next] as number));
      sums.exactLoss -= p[next] as number;
      sums.roundedLoss -= q[next] as number;
      const [a, b] = [p.subarray(i * size, (i + 1) * size), q.subarray(i * size, (i + 1) * size)];
      sums.divergence += divergence(a, b);
      if (likeliest(a) === likeliest(b)) sums.agreed++;
    }
  }
  const count = windows * length;
  return { count, ...Object.fromEntries(Object.entries(sums).map(([key, sum]) => [key, sum / count])) };
}

function reader(model: DecodingModel, windows: readonly (readonly number[])[], length: number) {
  const cache = new KeyValueCache(model.model, windows.length, length);
  return async (t: number): Promise<Float32Array> =>
    await model.extend(
      cache,
      windows.map((window, slot) => ({ slot, cached: t, tokens: [window[t] as number] })),
    );
}

/** KL(p || q) of two rows of log-probabilities, nats. */
function divergence(p: Float32Array, q: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < p.length; i++) {
    const logprob = p[i] as number;
    if (logprob > -25) sum += Math.exp(logprob) * (logprob - (q[i] as number));
  }
  return sum;
}

function likeliest(row: Float32Array): number {
  let best = 0;
  for (let i = 1; i < row.length; i++) if ((row[i] as number) > (row[best] as number)) best = i;
  return best;
}

async function decode(request: Extract<Request, { op: "decode" }>): Promise<object> {
  const { ids, tokenizer } = state();
  const identity = { type: "embedded", model: "bench" };
  const setting = { identity, tokenizer, maxSlots: request.batch, cacheMemory: 4e9 };
  const policy = new EmbeddedPolicy({ ...setting, model: modelOf(request.weights) });
  const contexts = Array.from({ length: request.batch }, (_, i) => ({
    text: "",
    tokens: ids.slice(i * request.prompt, (i + 1) * request.prompt),
    seed: i,
  }));
  const sampling = { maxTokens: request.tokens, temperature: 0, topP: 1, topK: 0, stop: [] };
  const start = performance.now();
  const busy = process.cpuUsage();
  const completions = await policy.complete(contexts, sampling);
  const seconds = (performance.now() - start) / 1000;
  const { user, system } = process.cpuUsage(busy);
  const tokens = completions.reduce((sum, { usage }) => sum + usage.completionTokens, 0);
  return { seconds, processorSeconds: (user + system) / 1e6, tokens };
}

async function answer(request: Request): Promise<object> {
  switch (request.op) {
    case "prepare":
      return await prepare(request);
    case "loss":
      return await loss(request);
    case "decode":
      return await decode(request);
    case "ids":
      return { ids: state().ids.slice(0, 512) };
  }
}

await answerRequests(answer);
