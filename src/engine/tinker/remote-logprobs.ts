/** Log-probabilities of given targets on a Tinker server, under the weights that are trained or under frozen ones. */
import type { Datum } from "../../algorithm/datum.ts";
import { EngineError } from "../../errors.ts";
import { type Limiter, runTogether } from "../../shared/concurrency.ts";
import type { ReferencePolicy } from "../engine.ts";
import { readAnswer } from "./answers.ts";
import type { Connection } from "./connection.ts";
import type { RemoteModel } from "./remote-model.ts";
import type { Session } from "./session.ts";
import { sample } from "./tinker-policy.ts";
import type { WireAnswer } from "./wire.ts";
import { chunked, wireDatum } from "./wire-data.ts";

interface ChunkLimits {
  readonly chunkBytes: number;
  readonly chunkDatums: number;
}

/** By a forward pass: one row (T) for each datum. Throws `EngineError`. */
export async function computeLogprobs(
  model: RemoteModel,
  batch: readonly Datum[],
  limits: ChunkLimits,
): Promise<Float32Array[]> {
  if (batch.length === 0) return [];
  const data = batch.map((datum) =>
    wireDatum(datum, { weights: new Float32Array(datum.targets.length).fill(1) }),
  );
  const answers = await Promise.all(
    chunked({ loss_fn: "cross_entropy", data }, limits).map((input) =>
      model.run("forward", { forward_input: { ...input, data: [...input.data] } }),
    ),
  );
  return logprobRows(model.connection, answers, batch);
}

/** Log-probabilities by datum. Throws `EngineError` where the server has others than it was asked for. */
export function logprobRows(
  connection: Connection,
  answers: readonly WireAnswer<"forward">[],
  batch: readonly Datum[],
): Float32Array[] {
  const outputs = answers.flatMap(({ loss_fn_outputs }) => loss_fn_outputs);
  return batch.map(({ targets }, index) => {
    const row = outputs[index]?.logprobs.data;
    if (row?.length === targets.length && outputs.length === batch.length) return Float32Array.from(row);
    throw connection.error(
      { path: "forward" },
      `expected ${targets.length} log-probabilities for each of ${batch.length} sequences, got ${row?.length ?? "none"} of ${outputs.length}`,
      "malformed",
    );
  });
}

/** A second model that is never stepped. */
export function modelReference(
  frozen: RemoteModel,
  requireSound: (batch: readonly Datum[]) => void,
  limits: ChunkLimits,
): ReferencePolicy {
  return {
    logprobs: async (batch) => {
      requireSound(batch);
      return await computeLogprobs(frozen, batch, limits);
    },
  };
}

/** A snapshot for sampling that is kept, asked for the log-probabilities of prompts. */
export async function snapshotReference(
  session: Session,
  modelPath: string,
  {
    requireSound,
    limiter,
  }: { readonly requireSound: (batch: readonly Datum[]) => void; readonly limiter: Limiter },
): Promise<ReferencePolicy> {
  const { connection } = session;
  const path = "create_sampling_session";
  const body = {
    session_id: session.id,
    sampling_session_seq_id: session.nextSampler(),
    model_path: modelPath,
  };
  const answer = await connection.call({ path, body, repeat: "always", signal: session.signal });
  const { sampling_session_id } = readAnswer(connection, path, answer);
  let next = 0;
  const seqId = (): number => next++;
  return {
    logprobs: async (batch) => {
      requireSound(batch);
      const tasks = batch.map(
        (datum) => (signal: AbortSignal) =>
          limiter.run(
            () => promptLogprobs(connection, { datum, sampling_session_id, seqId, signal }),
            signal,
          ),
      );
      return await runTogether(tasks, { concurrency: Math.max(1, tasks.length), signal: session.signal });
    },
  };
}

interface PromptCall {
  readonly datum: Datum;
  readonly sampling_session_id: string;
  readonly seqId: () => number;
  readonly signal: AbortSignal;
}

/** Log-probabilities (T) of the targets of a datum, read as one text: inputs and the last target. */
async function promptLogprobs(
  connection: Connection,
  { datum, sampling_session_id, seqId, signal }: PromptCall,
): Promise<Float32Array> {
  const { inputs, targets } = datum;
  for (let t = 0; t + 1 < inputs.length; t++)
    if (targets[t] !== inputs[t + 1])
      throw new EngineError(
        `target ${t} is not the next input; ${connection.profile.title} tells reference log-probabilities of whole texts only`,
      );
  const tokens = [...inputs, targets.at(-1) as number];
  const body = {
    sampling_session_id,
    num_samples: 1,
    prompt: { chunks: [{ type: "encoded_text" as const, tokens }] },
    sampling_params: { max_tokens: 1, temperature: 1 },
    prompt_logprobs: true,
  };
  const { prompt_logprobs } = await sample(connection, { body, seqId, signal });
  const told =
    connection.profile.promptLogprobs === "leadingNull" ? prompt_logprobs?.slice(1) : prompt_logprobs;
  if (told?.length === targets.length && told.every((value) => value !== null))
    return Float32Array.from(told as number[]);
  throw connection.error(
    { path: "asample" },
    `expected ${targets.length} log-probabilities of a prompt of ${tokens.length} tokens, got ${told?.length ?? "none"}; check engine.profile`,
    "malformed",
  );
}
