/**
 * The built-in worlds behind one generator: `atlas` (real facts) and `lab` (invented names, any size). A world
 * is a pure function of its options: equal options give equal passages and questions on every machine.
 */
import { z } from "zod";
import { ConfigError } from "../errors.ts";
import { atlasOptionsSchema, makeAtlas } from "./atlas.ts";
import { makeLab } from "./lab.ts";
import { labOptionsSchema } from "./lab-options.ts";
import type { World } from "./world-contract.ts";

export type { QuestionSplits, World, WorldSource } from "./world-contract.ts";

/** Options of a world; `name` chooses which, everything else has a default. */
export const worldOptionsSchema = z.discriminatedUnion("name", [atlasOptionsSchema, labOptionsSchema]);
export type WorldOptions = z.input<typeof worldOptionsSchema>;

/** Makes a world; throws `ConfigError` for options that the schema refuses or that cannot be met together. */
export async function makeWorld(options: WorldOptions): Promise<World> {
  const parsed = worldOptionsSchema.safeParse(options);
  if (!parsed.success) throw new ConfigError(`world options: ${z.prettifyError(parsed.error)}`);
  return parsed.data.name === "atlas" ? makeAtlas(parsed.data) : makeLab(parsed.data);
}
