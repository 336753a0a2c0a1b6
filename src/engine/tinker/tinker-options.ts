/** What a recipe says of an engine elsewhere that speaks the Tinker protocol (docs/remote-engine.md). */
import { z } from "zod";
import { baseUrlSchema, variableNameSchema } from "../../shared/http-options.ts";
import { profileNames } from "./profiles.ts";

const milliseconds = z.int().min(1).max(86_400_000);

export const tinkerOptionsSchema = z.strictObject({
  type: z
    .literal("tinker")
    .describe("A server that speaks the Tinker protocol, such as SkyRL or `forager serve engine`."),
  url: baseUrlSchema.describe("Where the server listens, such as http://127.0.0.1:8000."),
  apiKeyEnv: variableNameSchema
    .optional()
    .describe("Environment variable that holds the key, sent as X-API-Key; absent: none is sent."),
  profile: z
    .enum(profileNames)
    .default("forager")
    .describe("Which program serves: each honours something else, and what it cannot do is an error here."),
  baseModel: z
    .string()
    .min(1)
    .optional()
    .describe(
      "The server's name of the model, as it was started with it; absent: the only one that it says it has.",
    ),
  rank: z
    .int()
    .min(0)
    .default(32)
    .describe("Rank of the adapters that are trained there; 0 trains all weights, where the server can."),
  tokenizer: z
    .string()
    .min(1)
    .optional()
    .describe(
      "The model's tokenizer: a source as for `pretrained`. Absent: that of `model`, where it names one that exists, else the one the server names. Relative to the recipe's folder.",
    ),
  contextLength: z
    .int()
    .min(2)
    .optional()
    .describe(
      "Most tokens of an episode; absent: what the server says, else what config.json beside the tokenizer says.",
    ),
  concurrency: z
    .int()
    .min(1)
    .max(4096)
    .default(64)
    .describe("Most samples in flight; SkyRL with SQLite starves at about 500."),
  chunkBytes: z
    .int()
    .min(10_000)
    .optional()
    .describe("Most bytes of one POST of a batch, which is cut into several; absent: the profile's."),
  serverOptimizer: z
    .strictObject({
      beta1: z.number().min(0).lt(1).describe("Decay of the mean of gradients."),
      beta2: z.number().min(0).lt(1).describe("Decay of the mean of squared gradients."),
      epsilon: z.number().positive().describe("Added to the root of the second moment."),
      weightDecay: z.number().min(0).describe("Decoupled decay; 0 is none."),
      maxGradientNorm: z
        .number()
        .min(0)
        .describe("Norm that a longer gradient is scaled down to; 0 never scales."),
    })
    .partial()
    .optional()
    .describe(
      "AdamW fields that the server was started with, where its profile takes none of them by call: they must equal those of every stage.",
    ),
  retries: z
    .int()
    .min(0)
    .max(100)
    .default(8)
    .describe("Further attempts after a server error; a server that is away is waited for `patienceMs`."),
  backoffMs: z
    .int()
    .min(1)
    .default(500)
    .describe(
      "Milliseconds before the first retry, doubled for each up to 10 s, with jitter; Retry-After is obeyed.",
    ),
  patienceMs: milliseconds
    .default(300_000)
    .describe("Milliseconds that a server may be away or busy, as while it restarts, before the run ends."),
  resultTimeoutMs: milliseconds
    .default(3_600_000)
    .describe("Milliseconds that one result may take before the run ends."),
  downloadAdapters: z
    .boolean()
    .default(true)
    .describe(
      "Each checkpoint also holds the adapters in PEFT's layout, where the server hands them out; false: only their place on the server.",
    ),
});

export type TinkerOptions = z.output<typeof tinkerOptionsSchema>;
