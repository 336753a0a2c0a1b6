/**
 * A run that is resumed must be over what it began with: another corpus, index, tokenizer or question file would give other
 * numbers under the name of the first ones, without an error. What the run's `contract.json` says is compared with what
 * holds now; keys that only one of them has are left alone, since another version of Forager wrote them.
 */
import { ConfigError } from "../errors.ts";

/**
 * Throws `ConfigError` that names what is no longer as in `kept`; returns a remark where the program is another, or where a
 * model without a hash lies elsewhere.
 */
export function requireSameContract(kept: unknown, now: object, folder: string): string | undefined {
  const [before, after] = [leavesOf(kept), leavesOf(now)];
  const changed = [...before].flatMap(([key, was]): Change[] => {
    const is = after.get(key);
    return after.has(key) && is !== was && !mayMove(key, { before, after }) ? [{ key, was, is }] : [];
  });
  const program = changed.filter(({ key }) => isProgram(key));
  const moved = changed.filter(isElsewhere);
  const other = changed.filter((change) => !program.includes(change) && !moved.includes(change));
  if (other.length > 0)
    throw new ConfigError(
      `${folder} began with something else: ${other.map(({ key, was, is }) => `${key} was ${shown(was)} and is ${shown(is)}`).join("; ")}. Put back what it began with, or train anew into another folder${causeIn(program)}`,
    );
  if (program.length === 0 && moved.length === 0) return undefined;
  const unknown =
    moved.length > 0 ? ", and no hash tells whether a model that lies elsewhere is the same" : "";
  return `this run began with ${listed([...program, ...moved])}: its numbers may differ from those that it would have had${unknown}`;
}

interface Change {
  readonly key: string;
  readonly was: unknown;
  readonly is: unknown;
}

type Leaves = ReadonlyMap<string, unknown>;

function isProgram(key: string): boolean {
  return key === "codeVersion" || key === "node";
}

/** What a refusal adds where the program is another: it may describe the same things otherwise. */
function causeIn(program: readonly Change[]): string {
  if (program.length === 0) return "";
  const name = program.some(({ key }) => key === "codeVersion") ? "Forager" : "Node.js";
  return `. It also began with ${listed(program)}: another version of ${name} may be the cause, and the one that it began with then goes on`;
}

function listed(changes: readonly Change[]): string {
  return changes.map(({ key, was, is }) => `${key} ${shown(was)}, now ${shown(is)}`).join(", ");
}

/** Frozen models have no hash: one whose folder or server is another may be the same, one of another name is not. */
function isElsewhere({ key, was, is }: Change): boolean {
  return /^(generator|answerJudge)\.(model|judge)$/.test(key) && placeless(was) === placeless(is);
}

/** The identity of a frozen model without its path (`embedded PATH`, `PATH`) or its server (`openai chat NAME at URL`). */
function placeless(model: unknown): string {
  return String(model)
    .replace(/^(embedded )?(\/|[A-Za-z]:[\\/]).*$/, "$1/")
    .replace(/ at \S+$/, "");
}

/**
 * Servers may move, and are then known by other names; a model that lies elsewhere is known by its hash, which for a
 * reranker is part of `retriever.indexHash`.
 */
function mayMove(
  key: string,
  { before, after }: { readonly before: Leaves; readonly after: Leaves },
): boolean {
  if (/^engine\.(url|probe\.)|^retriever\.parameters\.(url|stated\.)/.test(key)) return true;
  if (/(^|\.)model\.(source|hub|commit)$|^retriever\.parameters\.reranker$/.test(key)) return true;
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
