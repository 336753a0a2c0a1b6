/** The codecs that a recipe can name. */
import { ConfigError } from "../errors.ts";
import type { Codec } from "./action.ts";
import { coSearchCodec } from "./cosearch-codec.ts";
import { evidenceCodec } from "./evidence-codec.ts";
import { ircotCodec } from "./ircot-codec.ts";
import { plainCodec } from "./plain-codec.ts";
import { compactPlannerCodec, plannerCodec } from "./planner-codec.ts";
import { searchO1Codec } from "./search-o1-codec.ts";
import { compactCodec, searchR1Codec } from "./search-r1-codec.ts";

export const codecNames = [
  "search-r1",
  "compact",
  "plain",
  "planner",
  "planner-compact",
  "ircot",
  "search-o1",
  "evidence",
  "cosearch",
] as const;
export type CodecName = (typeof codecNames)[number];

const codecs: Readonly<Record<CodecName, Codec>> = {
  "search-r1": searchR1Codec,
  compact: compactCodec,
  plain: plainCodec,
  planner: plannerCodec,
  "planner-compact": compactPlannerCodec,
  ircot: ircotCodec,
  "search-o1": searchO1Codec,
  evidence: evidenceCodec,
  cosearch: coSearchCodec,
};

/** The codec called `name`. Throws `ConfigError` when there is none. */
export function findCodec(name: string): Codec {
  const codec = Object.hasOwn(codecs, name) ? codecs[name as CodecName] : undefined;
  if (codec === undefined)
    throw new ConfigError(`unknown codec ${JSON.stringify(name)}; use one of ${codecNames.join(", ")}`);
  return codec;
}
