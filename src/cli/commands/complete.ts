/** `forager complete`: one completion of one prompt, with the log-probability of every token. */
import { availableParallelism } from "node:os";
import type { ServedModel } from "../../config/model-source-options.ts";
import type { SamplingWeights } from "../../engine/weight-quantization.ts";
import { UsageError } from "../../errors.ts";
import type { Context, Policy, SamplingOptions } from "../../rollout/policy.ts";
import { Closers } from "../../shared/closers.ts";
import type { Tokenizer } from "../../tokenizer/tokenizer.ts";
import { machineMemory } from "../../training/engine-options.ts";
import { hubSettings } from "../../training/hub-settings.ts";
import { checkpointOf } from "../../training/model-shape.ts";
import { openServedPolicy } from "../../training/open-policy.ts";
import { processWorld } from "../../training/world.ts";
import { type CommandIo, defineCommand } from "../command.ts";
import { findModel } from "../open-model.ts";
import { readWeights, weightsOption } from "../weights-option.ts";

export const completeCommand = defineCommand({
  name: "complete",
  summary: "Continue a text with a model.",
  details:
    "The prompt is taken as it is, after the token that begins a text where the model's tokenizer puts one. With --chat\n" +
    "it is what a user says, and the model's own chat template is put around it.",
  args: [],
  options: {
    model: {
      type: "text",
      value: "MODEL",
      doc: "A folder, a .gguf file, a run, smollm2-135m, hf:owner/name[@revision], or a recipe.",
      isRequired: true,
    },
    prompt: { type: "text", value: "TEXT", doc: "What is continued.", isRequired: true },
    "max-tokens": { type: "integer", value: "N", least: 1, doc: "Most tokens to sample; default 128." },
    temperature: { type: "text", value: "T", doc: "0 (default) takes the likeliest token; 1 samples." },
    "top-p": { type: "text", value: "P", doc: "Nucleus mass in (0, 1]; default 1." },
    "top-k": { type: "integer", value: "K", least: 0, doc: "Likeliest tokens kept; default 0, all." },
    seed: { type: "integer", value: "N", least: 0, doc: "Equal seeds give equal completions; default 1." },
    stop: { type: "list", value: "TEXT", doc: "End after this text; repeatable." },
    weights: weightsOption,
    chat: { type: "flag", doc: "Put the model's chat template around the prompt." },
  },
  examples: [
    'complete --model smollm2-135m --chat --prompt "Which river flows through Prague?"',
    'complete --model models/smollm2 --prompt "The river" --max-tokens 32 --json',
  ],
  async run({ options }, io) {
    const sampling = samplingOptions(options);
    const weights = readWeights(options.weights);
    const source = /\.ya?ml$/.test(options.model as string)
      ? (await findModel(options.model as string, { overrides: [] })).model
      : (options.model as string);
    const opened = new Closers();
    try {
      const seed = options.seed ?? 1;
      const prompt = options.prompt as string;
      const asked =
        typeof source === "string"
          ? await openLocal(
              source,
              { prompt, isChat: options.chat, weights: weights ?? "f32" },
              { io, opened },
            )
          : await openServed(source, { prompt, isChat: options.chat, weights }, io);
      const [completion] = await asked.policy.complete([{ ...asked.context, seed }], sampling, io.signal);
      const { text = "", tokens = [], logprobs = [], finishReason, usage } = completion ?? {};
      io.print(text);
      return {
        json: {
          text,
          tokens,
          logprobs,
          finishReason,
          promptTokens: usage?.promptTokens ?? 0,
          usage: usage ?? null,
        },
      };
    } finally {
      await opened.close();
    }
  },
});

interface Asked {
  readonly policy: Policy;
  readonly context: Omit<Context, "seed">;
}

/** A model on this machine, and the prompt in its ids. */
async function openLocal(
  source: string,
  {
    prompt,
    isChat,
    weights,
  }: { readonly prompt: string; readonly isChat: boolean; readonly weights: SamplingWeights },
  { io, opened }: { readonly io: CommandIo; readonly opened: Closers },
): Promise<Asked> {
  const { EmbeddedEngine } = await import("../../engine/embedded-engine.ts");
  const engine = await EmbeddedEngine.open(await checkpointOf(source), {
    threads: availableParallelism(),
    tokenBudget: 4096,
    maxSlots: 1,
    samplingWeights: weights,
    machineMemory: machineMemory(),
    hub: hubSettings(process.env, io),
  });
  opened.defer(() => engine.close());
  const { tokenizer } = engine;
  const tokens = isChat ? await chatTokens(tokenizer, prompt, io.now()) : plainTokens(tokenizer, prompt);
  return { policy: engine.policy(), context: { text: tokenizer.decode(tokens), tokens } };
}

/** A model elsewhere: a server puts its own chat template around messages, and with api completions none. */
async function openServed(
  model: ServedModel,
  {
    prompt,
    isChat,
    weights,
  }: { readonly prompt: string; readonly isChat: boolean; readonly weights: unknown },
  io: CommandIo,
): Promise<Asked> {
  if (isChat || weights !== undefined)
    throw new UsageError(
      "complete: --chat and --weights are for models on this machine; set model.api in the recipe",
    );
  if (prompt === "") throw new UsageError("complete: the prompt is empty; give a --prompt");
  const { policy, tokenizer } = await openServedPolicy(model, processWorld(io));
  const tokens = tokenizer === undefined ? {} : { tokens: plainTokens(tokenizer, prompt) };
  return { policy, context: { text: prompt, ...tokens } };
}

function plainTokens(tokenizer: Tokenizer, prompt: string): number[] {
  const begin = tokenizer.beginOfTextId === undefined ? [] : [tokenizer.beginOfTextId];
  const tokens = [...begin, ...tokenizer.encode(prompt)];
  if (tokens.length === 0) throw new UsageError("complete: the prompt is empty; give a --prompt");
  return tokens;
}

async function chatTokens(tokenizer: Tokenizer, prompt: string, today: Date): Promise<number[]> {
  if (tokenizer.chat === undefined)
    throw new UsageError("complete: the model has no chat template; leave --chat out");
  const { renderChat } = await import("../../tokenizer/chat-template.ts");
  const messages = [{ role: "user", content: prompt }];
  return tokenizer.encode(renderChat(tokenizer.chat, messages, { addGenerationPrompt: true, today }));
}

interface GivenOptions {
  readonly "max-tokens"?: number | undefined;
  readonly temperature?: string | undefined;
  readonly "top-p"?: string | undefined;
  readonly "top-k"?: number | undefined;
  readonly stop: readonly string[];
}

function samplingOptions(options: GivenOptions): SamplingOptions {
  return {
    maxTokens: options["max-tokens"] ?? 128,
    temperature: readNumber("temperature", options.temperature ?? "0", (value) => value >= 0),
    topP: readNumber("top-p", options["top-p"] ?? "1", (value) => value > 0 && value <= 1),
    topK: options["top-k"] ?? 0,
    stop: options.stop,
  };
}

function readNumber(name: string, text: string, isValid: (value: number) => boolean): number {
  const value = text.trim() === "" ? Number.NaN : Number(text);
  if (Number.isFinite(value) && isValid(value)) return value;
  const range = name === "temperature" ? "a number of at least 0" : "a number above 0 and at most 1";
  throw new UsageError(`complete: --${name} is ${JSON.stringify(text)}, ${range} was expected`);
}
