/** `forager doctor --engine URL`: does a server do what a profile says, so that it can be trained with? */
import { profileNames } from "../../engine/tinker/profiles.ts";
import { type TinkerOptions, tinkerOptionsSchema } from "../../engine/tinker/tinker-options.ts";
import { UsageError } from "../../errors.ts";
import { examineServer, probeText } from "../../training/open-tinker.ts";
import type { CommandIo, CommandResult, OptionValues } from "../command.ts";

export const engineFlags = {
  engine: { type: "text", value: "URL", doc: "Probe a server of the Tinker protocol instead of a recipe." },
  profile: {
    type: "text",
    value: "NAME",
    doc: `With --engine: ${profileNames.join(", ")}; default: forager.`,
  },
  "base-model": { type: "text", value: "NAME", doc: "With --engine: the server's name of the model." },
  rank: {
    type: "integer",
    value: "N",
    doc: "With --engine: rank of the adapters; 0: all weights. Default: 8.",
  },
  tokenizer: { type: "text", value: "MODEL", doc: "With --engine: whose tokenizer is compared." },
  "api-key-env": { type: "text", value: "NAME", doc: "With --engine: environment variable with the key." },
} as const;

/** Prints the verdict; a server that is not what its profile says exits with 1. */
export async function doctorOfEngine(
  recipe: string | undefined,
  flags: OptionValues<typeof engineFlags>,
  io: CommandIo,
): Promise<CommandResult> {
  if (recipe !== undefined)
    throw new UsageError("doctor: --engine probes a server alone; leave the recipe out");
  const options = optionsOf(flags);
  const { baseModel, verdict } = await examineServer(options, io);
  io.print(
    `${verdict.ok ? "ok  " : "FAIL"} ${options.url} (${options.profile}, ${baseModel}): ${probeText(verdict)}`,
  );
  for (const problem of verdict.problems) io.print(`     fix: ${problem}`);
  const probe = { url: options.url, profile: options.profile, baseModel, rank: options.rank, ...verdict };
  return { json: { ok: verdict.ok, probe }, exitCode: verdict.ok ? 0 : 1 };
}

function optionsOf(flags: OptionValues<typeof engineFlags>): TinkerOptions {
  const { engine: url, profile, rank = 8, tokenizer } = flags;
  const baseModel = flags["base-model"];
  const apiKeyEnv = flags["api-key-env"];
  const parsed = tinkerOptionsSchema.safeParse({
    type: "tinker",
    url,
    rank,
    ...(profile !== undefined && { profile }),
    ...(baseModel !== undefined && { baseModel }),
    ...(tokenizer !== undefined && { tokenizer }),
    ...(apiKeyEnv !== undefined && { apiKeyEnv }),
    // A person waits for the answer.
    patienceMs: 60_000,
  });
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const flag = issue?.path[0] === "url" ? "engine" : String(issue?.path[0]);
  throw new UsageError(`doctor: --${flag}: ${issue?.message}`);
}
