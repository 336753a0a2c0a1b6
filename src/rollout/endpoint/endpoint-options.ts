/** What a recipe can say about a model that another program serves. */
import { z } from "zod";
import { baseUrlSchema, callOptionsShape, variableNameSchema } from "../../shared/http-options.ts";
import { apiNames, type Profile, profileNames, profiles } from "./profiles.ts";

const dollars = z.number().min(0);

export const priceSchema = z
  .strictObject({
    input: dollars.describe("Dollars for a million prompt tokens."),
    cached: dollars
      .optional()
      .describe(
        "Dollars for a million prompt tokens that the server found in its cache; absent: as `input`.",
      ),
    output: dollars.describe("Dollars for a million sampled tokens."),
  })
  .describe("What the provider asks; absent: money is counted as 0 and results say unpriced.");

export type Price = z.output<typeof priceSchema>;

export const endpointSourceSchema = z
  .strictObject({
    type: z
      .literal("openai")
      .describe(
        "A model behind a server of the OpenAI protocol; it can be evaluated and asked, not trained.",
      ),
    url: baseUrlSchema.describe(
      "Where the protocol begins, such as http://127.0.0.1:8000/v1; /v1 is added to a URL without a path.",
    ),
    model: z.string().min(1).describe("The server's name of the model."),
    profile: z
      .enum(profileNames)
      .default("openai")
      .describe("Which program serves, since each offers something else (docs/policies.md)."),
    api: z
      .enum(apiNames)
      .default("chat")
      .describe("`completions` continues the text of the episode; `chat` speaks in messages."),
    continuation: z
      .enum(["prefix", "messages"])
      .optional()
      .describe(
        "How a chat goes on after a search: `prefix` lets the assistant go on with its own message; `messages` sends what was found as a message of the user. Absent: prefix where the profile can.",
      ),
    tokenizer: z
      .string()
      .min(1)
      .optional()
      .describe(
        "The model's tokenizer: a source as for `pretrained`. With it, contexts are limited and counted in tokens, and `completions` gets ids. Relative to the recipe's folder.",
      ),
    contextLength: z
      .int()
      .min(1)
      .optional()
      .describe(
        "Most tokens of an episode; needs `tokenizer`. Absent: the server's own limit, which fails the episode.",
      ),
    logprobs: z
      .boolean()
      .default(false)
      .describe(
        "True: asks for the ids and log-probabilities of sampled tokens, where the profile has them.",
      ),
    thinking: z
      .boolean()
      .optional()
      .describe(
        "Whether a model that can think aloud does (`enable_thinking` of its template), with api chat of vLLM, SGLang and llama.cpp; false for judges and generators of few tokens. Absent: as the server has it.",
      ),
    apiKeyEnv: variableNameSchema
      .optional()
      .describe("Environment variable that holds the API key; absent: no key is sent."),
    price: priceSchema.optional(),
    budget: z
      .strictObject({
        maxCalls: z.int().min(0).optional().describe("Most completions; absent: no limit."),
        maxTokens: z
          .int()
          .min(0)
          .optional()
          .describe("Most tokens, of prompts and completions together; absent: no limit."),
        maxDollars: dollars.optional().describe("Most dollars at `price`; absent: no limit."),
      })
      .default({})
      .describe(
        "What the policy may cost; before it would be exceeded the run ends, and what was done is kept.",
      ),
    ...callOptionsShape,
    timeoutMs: z
      .int()
      .min(1)
      .max(3_600_000)
      .default(120_000)
      .describe("Milliseconds that one attempt may take, at most an hour."),
  })
  .superRefine((options, context) => {
    const { budget, price, tokenizer, contextLength, continuation, logprobs, thinking, api } = options;
    const profile: Profile = profiles[options.profile];
    const issue = (path: readonly string[], message: string): void =>
      context.addIssue({ code: "custom", path: [...path], message });
    if (budget.maxDollars !== undefined && price === undefined)
      issue(["budget", "maxDollars"], "a budget in dollars needs model.price");
    if (contextLength !== undefined && tokenizer === undefined)
      issue(
        ["contextLength"],
        "tokens are only counted with model.tokenizer; name it, or leave contextLength out",
      );
    if (!profile.apis.includes(api))
      issue(
        ["api"],
        `${profile.name} puts the model's template around prompts of completions; use api: chat`,
      );
    if (continuation !== undefined && api !== "chat")
      issue(["continuation"], "only api chat speaks in messages; leave continuation out");
    if (continuation === "prefix" && profile.prefix === undefined)
      issue(["continuation"], `${profile.name} cannot go on with a message of the assistant; use messages`);
    if (thinking !== undefined && (api !== "chat" || profile.templateArguments === undefined))
      issue(
        ["thinking"],
        `${profile.name} with api ${api} cannot be told whether to think; leave thinking out, or use api chat of vLLM, SGLang or llama.cpp`,
      );
    if (logprobs && profile.sampledIds[api] === undefined)
      issue(
        ["logprobs"],
        `${profile.name} does not tell the ids of sampled tokens with api ${api}; leave logprobs out`,
      );
  });

export type EndpointOptions = z.output<typeof endpointSourceSchema>;
