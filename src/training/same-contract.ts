/**
 * A run that is resumed must be over what it began with: another corpus, index, tokenizer or question file would give other
 * numbers under the name of the first ones, without an error. What the run's `contract.json` says is compared with what
 * holds now; keys that only one of them has are left alone, since another version of Forager wrote them.
 */
import { ConfigError } from "../errors.ts";

/** Throws `ConfigError` that names what is no longer as in `kept`; returns a remark where the program itself is another. */
export function requireSameContract(kept: unknown, now: object, folder: string): string | undefined {
  const [before, after] = [leavesOf(kept), leavesOf(now)];
  const changed = [...before].filter(
    ([key, value]) => after.has(key) && after.get(key) !== value && !mayMove(key, { before, after }),
  );
  const [program, other] = [changed.filter(isProgram), changed.filter((entry) => !isProgram(entry))];
  if (other.length > 0)
    throw new ConfigError(
      `${folder} began with something else: ${other.map(([key, value]) => `${key} was ${shown(value)} and is ${shown(after.get(key))}`).join("; ")}. Put back what it began with, or train anew into another folder`,
    );
  if (program.length === 0) return undefined;
  const names = program.map(([key, value]) => `${key} ${shown(value)}, now ${shown(after.get(key))}`);
  return `this run began with ${names.join(", ")}: its numbers may differ from those that it would have had`;
}

type Leaf = readonly [key: string, value: unknown];
type Leaves = ReadonlyMap<string, unknown>;

function isProgram([key]: Leaf): boolean {
  return key === "codeVersion" || key === "node";
}

/** Servers may move, and are then known by other names; a model that lies elsewhere is known by its hash. */
function mayMove(
  key: string,
  { before, after }: { readonly before: Leaves; readonly after: Leaves },
): boolean {
  if (/^engine\.(url|probe\.)|^retriever\.parameters\.(url|stated\.)/.test(key)) return true;
  if (/(^|\.)model\.(source|hub|commit)$/.test(key)) return true;
  const isUnstated = [before, after].some((leaves) =>
    String(leaves.get("retriever.corpusHash")).startsWith("unstated:"),
  );
  if (key === "retriever.corpusHash") return isUnstated;
  const url = "retriever.parameters.url";
  return key === "retriever.indexHash" && (isUnstated || before.get(url) !== after.get(url));
}

/** The values of `tree` that hold no others, by their dotted keys. */
function leavesOf(tree: unknown, prefix = ""): Map<string, unknown> {
  if (typeof tree !== "object" || tree === null) return new Map();
  return new Map(
    Object.entries(tree).flatMap(([key, value]: [string, unknown]): [string, unknown][] =>
      typeof value === "object" && value !== null
        ? [...leavesOf(value, `${prefix}${key}.`)]
        : [[`${prefix}${key}`, value]],
    ),
  );
}

/** Hashes are told apart by their beginnings. */
function shown(value: unknown): string {
  const text = String(value);
  return /^[0-9a-f]{40,}$/.test(text) ? `${text.slice(0, 12)}…` : text;
}
