/**
 * Our server against numbers that SkyRL 0.3.0 computed on the same weights (JAX, float32): log-probabilities and losses of four
 * training steps, and the gradient of the first. Its first step is ours to the last weight; later ones are not comparable, since
 * SkyRL's q, k and v share one A. `../shared/skyrl/numerics` holds them; without it the tests are skipped.
 */
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loraTargets } from "../../src/engine/lora-options.ts";
import { type EmbeddedBackend, openEmbeddedBackend } from "../../src/serving/engine/embedded-backend.ts";
import { type TestServer, testServer } from "../../src/serving/engine/engine-server.fixture.ts";

const shared = process.env.FORAGER_SHARED ?? join(import.meta.dirname, "../../../shared");
const numerics = join(shared, "skyrl/numerics");
const isMissing = !existsSync(numerics);
const title = isMissing
  ? "SkyRL's numbers (skipped: ../shared/skyrl/numerics is not there)"
  : "SkyRL's numbers";

interface Step {
  readonly name: string;
  readonly loss_fn: string;
  readonly loss_fn_config: Readonly<Record<string, number>> | null;
  readonly inputs: readonly Readonly<Record<string, readonly number[]>>[];
  readonly adam: Readonly<Record<string, number>>;
  readonly outputs: readonly { readonly elementwise_loss: number[]; readonly logprobs: number[] }[];
  readonly metrics: Readonly<Record<string, number>>;
  readonly logprobs_after: readonly (readonly number[])[];
}
interface Numbers {
  readonly tokens: readonly (readonly number[])[];
  readonly base_logprobs: readonly (readonly number[])[];
  readonly steps: readonly Step[];
}

describe.skipIf(isMissing)(title, () => {
  let numbers: Numbers;
  let backend: EmbeddedBackend;
  beforeAll(async () => {
    numbers = JSON.parse(readFileSync(join(numerics, "numerics.json"), "utf8"));
    backend = await openEmbeddedBackend(join(numerics, "base"), {
      threads: 1,
      maxSlots: 4,
      cacheMemory: 1e8,
    });
  });
  afterAll(async () => await backend?.close());

  test("log-probabilities and losses of every step, on SkyRL's weights before it", async () => {
    const server = await testServer({ backend });
    const before = ["init", ...numbers.steps.map(({ name }) => name)];
    for (const [index, step] of numbers.steps.entries()) {
      const model_id = await modelWith(server, before[index] as string, index);
      const { loss_fn_outputs } = await server.done("forward", {
        model_id,
        forward_input: input(numbers, step, () => 1),
      });
      for (const [d, output] of step.outputs.entries()) {
        close(loss_fn_outputs[d].logprobs.data, output.logprobs);
        close(loss_fn_outputs[d].elementwise_loss.data, output.elementwise_loss);
      }
      // Fresh adapters change nothing.
      if (index === 0)
        for (const [d, row] of numbers.base_logprobs.entries()) close(loss_fn_outputs[d].logprobs.data, row);
    }
  });

  test("the first step: gradient norm and log-probabilities after it, with weights that give its mean of means", async () => {
    const server = await testServer({ backend });
    const [step] = numbers.steps as [Step];
    const model_id = await modelWith(server, "init", 0);
    const sequences = numbers.tokens.length;
    const mean = (weights: readonly number[]): number => 1 / (sequences * weights.reduce((a, b) => a + b, 0));
    const data = input(numbers, step, mean);
    await server.done("forward_backward", { model_id, seq_id: 2, forward_backward_input: data });
    const { metrics } = await server.done("optim_step", { model_id, seq_id: 3, adam_params: step.adam });
    expect(metrics.grad_norm).toBeCloseTo(step.metrics["skyrl.ai/grad_norm"] as number, 4);
    const after = await server.done("forward", { model_id, forward_input: input(numbers, step, () => 1) });
    for (const [d, row] of step.logprobs_after.entries()) close(after.loss_fn_outputs[d].logprobs.data, row);
  });
});

/** Within what float32 in another order of sums differs. */
function close(ours: readonly number[], theirs: readonly number[]): void {
  expect(ours).toHaveLength(theirs.length);
  for (const [t, value] of ours.entries()) expect(Math.abs(value - (theirs[t] as number))).toBeLessThan(1e-4);
}

function input({ tokens }: Numbers, step: Step, factor: (weights: readonly number[]) => number): object {
  const data = tokens.map((sequence, d) => {
    const tensors = step.inputs[d] as Readonly<Record<string, readonly number[]>>;
    const weights = tensors.weights ?? [];
    const scale = factor(weights);
    const columns = { ...tensors, weights: weights.map((weight) => weight * scale) };
    return {
      model_input: { chunks: [{ tokens: sequence.slice(0, -1) }] },
      loss_fn_inputs: {
        target_tokens: { data: sequence.slice(1) },
        ...Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, { data: values }])),
      },
    };
  });
  return { data, loss_fn: step.loss_fn, loss_fn_config: step.loss_fn_config };
}

/** A model with the adapters that SkyRL had after the step `name`, laid into the server's checkpoints. */
async function modelWith(server: TestServer<EmbeddedBackend>, name: string, number: number): Promise<string> {
  const shape = { rank: 4, alpha: 32, trainsAttention: true, trainsFeedForward: true, seed: 1 };
  const folder = join(server.folder, "checkpoints", "golden", "weights", name);
  mkdirSync(folder, { recursive: true });
  copyFileSync(join(numerics, `lora-${name}.safetensors`), join(folder, "adapter_model.safetensors"));
  const config = {
    peft_type: "LORA",
    base_model_name_or_path: join(numerics, "base"),
    r: shape.rank,
    lora_alpha: shape.alpha,
    target_modules: loraTargets,
  };
  writeFileSync(join(folder, "adapter_config.json"), JSON.stringify(config));
  const facts = { base_model: "base", shape, time: "2026-01-01T00:00:00.000Z" };
  writeFileSync(join(folder, "checkpoint.json"), JSON.stringify(facts));
  const session = await server.post("create_session", {});
  const { session_id } = session.body;
  const lora_config = { rank: shape.rank, seed: 1 };
  const create = { session_id, model_seq_id: number, base_model: "base", lora_config };
  const { model_id } = await server.done("create_model", create);
  await server.done("load_weights", { model_id, seq_id: 1, path: `tinker://golden/weights/${name}` });
  return model_id;
}
