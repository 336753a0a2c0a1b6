/**
 * A short examination of a server before it is trusted with a training: what a masked position does, what a gradient is divided
 * by, whether sampling and training agree, and whether the server reads tokens as we do. It works on a model of its own,
 * with steps of length 0, on a handful of short sequences.
 */
import type { Datum } from "../../algorithm/datum.ts";
import { EngineError } from "../../errors.ts";
import type { Tokenizer } from "../../tokenizer/tokenizer.ts";
import { readAnswer } from "./answers.ts";
import type { Connection } from "./connection.ts";
import { optimStep, stillStep } from "./optim-step.ts";
import { computeLogprobs } from "./remote-logprobs.ts";
import type { RemoteModel } from "./remote-model.ts";
import type { ModelWanted, Session } from "./session.ts";
import { sample } from "./tinker-policy.ts";
import { type Columns, type WireBatch, wireDatum } from "./wire-data.ts";

export interface ProbeVerdict {
  /** Whether the server does what its profile says, so that it can be trained with. */
  readonly ok: boolean;
  /** Masked positions change no gradient, whatever their targets are. */
  readonly maskWithoutEffect: boolean;
  /** What gradients are: `sum` over sequences, `sequenceMean`, or the ratio that came for data that were sent twice. */
  readonly reduction: "sum" | "sequenceMean" | `ratio ${string}`;
  /** The gradient with all advantages doubled, over that with the plain ones: 2. */
  readonly advantageRatio: number;
  /** Largest difference of a log-probability at sampling from that of a forward pass. */
  readonly samplingDifference: number;
  /** Whether the server's tokenizer spells tokens as ours; null: there was none, or no plain text to ask by. */
  readonly sameTokenizer: boolean | null;
  /** What is not as it should be, in sentences. */
  readonly problems: readonly string[];
}

/** Where sampler and trainer are the same program; else what rounding to bfloat16 may do to the log-probability of a token. */
const exactTolerance = 1e-3;
const roundedTolerance = 0.15;
const ratioTolerance = 0.02;
const ids = { inputs: [5, 6, 7, 8, 9, 10, 11, 12], targets: [6, 7, 8, 9, 10, 11, 12, 13] };

/** Probes with a model of its own, which is unloaded again. Throws `EngineError`, or the signal's reason. */
export async function probe(
  session: Session,
  wanted: ModelWanted,
  tokenizer?: Tokenizer,
): Promise<ProbeVerdict> {
  const model = await session.createModel(wanted);
  try {
    const gradients = await probeGradients(model);
    const sampling = await probeSampling(session, model, tokenizer);
    const measured = { ...gradients, ...sampling };
    const problems = problemsOf(measured, session);
    return { ok: problems.length === 0, ...measured, problems };
  } finally {
    await session.unload(model);
  }
}

type Measured = Omit<ProbeVerdict, "ok" | "problems">;

function problemsOf(measured: Measured, { connection }: Session): string[] {
  const { profile } = connection;
  const problems: string[] = [];
  const { reduction, samplingDifference, advantageRatio } = measured;
  if (!measured.maskWithoutEffect) problems.push("positions with an advantage of 0 change the gradient");
  if (reduction !== profile.reduction)
    problems.push(
      `gradients are reduced by ${reduction}, the profile ${profile.name} says ${profile.reduction}`,
    );
  if (Math.abs(advantageRatio - 2) > ratioTolerance)
    problems.push(`advantages twice as large give a gradient ${advantageRatio.toFixed(3)} times as large`);
  const tolerance = profile.samplerPrecision === undefined ? exactTolerance : roundedTolerance;
  if (!(samplingDifference <= tolerance))
    problems.push(
      `log-probabilities of sampling and of a forward pass differ by ${samplingDifference.toPrecision(3)}, at most ${tolerance} was expected`,
    );
  if (measured.sameTokenizer === false)
    problems.push("the server spells tokens otherwise than engine.tokenizer does");
  return problems;
}

/** Norms of gradients by steps of length 0. */
async function probeGradients(
  model: RemoteModel,
): Promise<Pick<Measured, "maskWithoutEffect" | "reduction" | "advantageRatio">> {
  const mask = [0, 0, 1, 1, 1, 1, 1, 1];
  const plain = datumOf(ids.inputs, ids.targets);
  const masked = datumOf(ids.inputs, [20, 21, ...ids.targets.slice(2)]);
  const norm = (data: readonly Datum[], scale = 1): Promise<number> =>
    gradientNorm(model, batchOf(model, data, { mask, scale }));
  const one = await norm([plain, plain]);
  const other = await norm([masked, masked]);
  const four = await norm([plain, plain, plain, plain]);
  const doubled = await norm([plain, plain], 2);
  const ratio = four / one;
  const isNear = (value: number): boolean => Math.abs(ratio - value) < ratioTolerance;
  return {
    maskWithoutEffect: Math.abs(other / one - 1) < 1e-4,
    reduction: isNear(2) ? "sum" : isNear(1) ? "sequenceMean" : `ratio ${ratio.toFixed(3)}`,
    advantageRatio: doubled / one,
  };
}

function datumOf(inputs: readonly number[], targets: readonly number[]): Datum {
  return {
    inputs: Int32Array.from(inputs),
    targets: Int32Array.from(targets),
    weights: new Float32Array(inputs.length).fill(1),
  };
}

function batchOf(
  { connection }: RemoteModel,
  data: readonly Datum[],
  { mask, scale }: { readonly mask: readonly number[]; readonly scale: number },
): WireBatch {
  const columns: Columns = {
    logprobs: mask.map((one) => (one === 0 ? 0 : -5)),
    advantages: mask.map((one) => one * scale),
    ...(connection.profile.sendsWeights && { weights: mask }),
  };
  return { loss_fn: "importance_sampling", data: data.map((datum) => wireDatum(datum, columns)) };
}

async function gradientNorm(model: RemoteModel, { loss_fn, data }: WireBatch): Promise<number> {
  await model.run("forward_backward", { forward_backward_input: { loss_fn, data: [...data] } });
  return await optimStep(model, stillStep);
}

/** Samples a few tokens and computes them again by a forward pass. */
async function probeSampling(
  session: Session,
  model: RemoteModel,
  tokenizer: Tokenizer | undefined,
): Promise<Pick<Measured, "samplingDifference" | "sameTokenizer">> {
  const { connection } = session;
  const path = "save_weights_for_sampler";
  const saved = await model.run(path, { sampling_session_seq_id: session.nextSampler() }, session.signal);
  const sampling_session_id = saved.sampling_session_id;
  if (typeof sampling_session_id !== "string")
    throw connection.error({ path }, "expected a sampling_session_id, got none", "malformed");
  let calls = 0;
  const draw = async (prompt: readonly number[], temperature: number, stop?: string[]) => {
    const params = { max_tokens: 8, temperature, seed: 1, ...(stop && { stop }) };
    const chunks = [{ type: "encoded_text" as const, tokens: [...prompt] }];
    const body = { sampling_session_id, num_samples: 1, prompt: { chunks }, sampling_params: params };
    const { sequences } = await sample(connection, { body, seqId: () => calls++, signal: session.signal });
    const [sequence] = sequences;
    if (sequence === undefined) throw new EngineError("the probe sampled nothing", { kind: "malformed" });
    return sequence;
  };
  const { tokens, logprobs } = await draw(ids.inputs, 1);
  const whole = [...ids.inputs, ...tokens];
  const { profile } = connection;
  const [row] = await computeLogprobs(model, [datumOf(whole.slice(0, -1), whole.slice(1))], profile);
  const computed = row?.slice(-tokens.length) ?? new Float32Array();
  const differences = tokens.map((_, t) => Math.abs((logprobs?.[t] ?? Number.NaN) - (computed[t] as number)));
  return {
    samplingDifference: Math.max(0, ...differences),
    sameTokenizer: tokenizer
      ? await comparesTokenizers(tokenizer, (...how) => draw(how[0], 0, how[1]))
      : null,
  };
}

/** First ids of the prompts that tokenizers are compared by, one after the other until a plain text comes. */
const startsOfPrompts = [5, 20, 40, 60];

/** A text that our tokenizer finds among greedy tokens must end the same tokens there; null where no prompt gave a plain text. */
async function comparesTokenizers(
  tokenizer: Tokenizer,
  draw: (prompt: readonly number[], stop?: string[]) => Promise<{ readonly tokens: readonly number[] }>,
): Promise<boolean | null> {
  for (const start of startsOfPrompts) {
    const prompt = ids.inputs.map((_, index) => start + index);
    if (prompt.some((id) => id >= tokenizer.vocabularySize)) return null;
    const { tokens } = await draw(prompt);
    if (tokens.some((id) => id >= tokenizer.vocabularySize)) return false;
    const found = tokenizer.decode(tokens).match(/[\x21-\x7e]{2,4}/)?.[0];
    if (found === undefined) continue;
    const end = tokens.findIndex((_, index) => tokenizer.decode(tokens.slice(0, index + 1)).includes(found));
    return (await draw(prompt, [found])).tokens.length === end + 1;
  }
  return null;
}

export interface ServerModel {
  readonly name: string;
  /** Most tokens of a sequence; undefined where the server does not tell. */
  readonly contextLength: number | undefined;
}

/** The model that `wanted` names, else the only one the server has. Throws `EngineError` where there are several. */
export async function serverModel(connection: Connection, wanted: string | undefined): Promise<ServerModel> {
  const path = "get_server_capabilities";
  const answer = readAnswer(
    connection,
    path,
    await connection.call({ method: "GET", path, repeat: "always" }),
  );
  const models = answer.supported_models;
  const found = wanted === undefined ? models : models.filter(({ model_name }) => model_name === wanted);
  const contextLength = found.length === 1 ? (found[0]?.max_context_length ?? undefined) : undefined;
  // A server may know more names than it tells.
  if (wanted !== undefined) return { name: wanted, contextLength };
  const name = found[0]?.model_name;
  if (typeof name === "string" && found.length === 1) return { name, contextLength };
  throw connection.error(
    { method: "GET", path },
    `it has ${models.length} models (${models.map(({ model_name }) => model_name).join(", ")}); name one in engine.baseModel`,
    "rejected",
  );
}
