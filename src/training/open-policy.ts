/** Opens the model of a recipe that is only asked: one behind a server, or a recording of one. */
import { join } from "node:path";
import type { ServedModel } from "../config/model-source-options.ts";
import { createEndpointPolicy } from "../rollout/endpoint/endpoint-policy.ts";
import type { Policy } from "../rollout/policy.ts";
import { recordPolicy } from "../rollout/recording/record-policy.ts";
import { replayPolicy } from "../rollout/recording/replay-policy.ts";
import type { Closers } from "../shared/closers.ts";
import { exists } from "../shared/files.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import type { World } from "./world.ts";

export interface OpenedPolicy {
  readonly policy: Policy;
  /** What contexts are counted in, and for some policies made of; undefined: contexts are text alone. */
  readonly tokenizer: Tokenizer | undefined;
  /** Most tokens of an episode; undefined: not known here. */
  readonly contextLength: number | undefined;
  /** Episodes that make sense at once; undefined: as many as there are. */
  readonly concurrency: number | undefined;
}

/** Opens a served model. Throws `ConfigError`, `FileError`, `DataFormatError`. */
export async function openServedPolicy(model: ServedModel, world: World): Promise<OpenedPolicy> {
  const tokenizer = model.tokenizer === undefined ? undefined : await openTokenizer(model.tokenizer, world);
  if (model.type === "replay") {
    const policy = await replayPolicy(model.file, tokenizer?.hash);
    for (const warning of policy.warnings) world.note(warning);
    const { contextLength, hasTemplate } = policy;
    return {
      policy,
      tokenizer: hasTemplate ? tokenizer : withoutTemplate(tokenizer),
      contextLength,
      concurrency: undefined,
    };
  }
  const policy = createEndpointPolicy(model, world, tokenizer);
  return {
    policy,
    // Around messages the server puts its own template.
    tokenizer: model.api === "chat" ? withoutTemplate(tokenizer) : tokenizer,
    contextLength: model.contextLength,
    // Episodes that wait for others' calls would be lost when the budget ends.
    concurrency: model.concurrency,
  };
}

function withoutTemplate(tokenizer: Tokenizer | undefined): Tokenizer | undefined {
  if (tokenizer === undefined) return undefined;
  const { chat: _, ...plain } = tokenizer;
  return plain;
}

/** The tokenizer of a model, without opening its weights. Throws `FileError`, `DataFormatError`, `HubError`. */
async function openTokenizer(source: string, world: World): Promise<Tokenizer> {
  const { locateTokenizer } = await import("../engine/model-source.ts");
  const path = await locateTokenizer(source, world.hub);
  if (await exists(join(path, "tokenizer.json"))) {
    const { readTokenizer } = await import("../tokenizer/tokenizer-file.ts");
    return await readTokenizer(path);
  }
  const { openModelFiles } = await import("../engine/model-files.ts");
  const files = await openModelFiles(path, world.hub);
  try {
    return await files.readTokenizer();
  } finally {
    await files.close();
  }
}

/** Where another part's completions are recorded beside the agent's: `FILE.generator.jsonl` beside `FILE.jsonl`. */
export function recordingOf(
  file: string | undefined,
  part: "generator" | "judge" | "ranker",
): string | undefined {
  return file?.replace(/((?:\.jsonl)?(?:\.gz)?)$/, `.${part}$1`);
}

/** What `opened` says, appended to `file` too; `closers` gets what must be closed. Throws `FileError`, `DataFormatError`. */
export async function recorded(
  opened: OpenedPolicy,
  file: string | undefined,
  { closers, world }: { readonly closers: Closers; readonly world: World },
): Promise<OpenedPolicy> {
  if (file === undefined) return opened;
  const { policy, tokenizer, contextLength } = opened;
  const recording = await recordPolicy(policy, file, {
    ...(tokenizer !== undefined && { tokenizer: tokenizer.hash, hasTemplate: tokenizer.chat !== undefined }),
    ...(contextLength !== undefined && { contextLength }),
  });
  closers.defer(() => recording.close());
  for (const warning of recording.warnings) world.note(warning);
  return { ...opened, policy: recording };
}
