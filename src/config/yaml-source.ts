/**
 * YAML text to plain values, remembering the line of every key for error messages. YAML 1.2 core schema;
 * duplicate keys, unknown tags, several documents and alias bombs are refused.
 */
import { isAlias, isMap, isPair, isScalar, isSeq, LineCounter, parseDocument } from "yaml";
import { ConfigError } from "../errors.ts";

export interface YamlSource {
  readonly value: unknown;
  /** Line (from 1) of the key or entry at `path`, or of its deepest ancestor that is written down. */
  lineOf(path: readonly PropertyKey[]): number;
}

/** Parses `text`; `file` names it in errors. Throws `ConfigError` that starts with `file:line: `. */
export function parseYaml(text: string, file: string): YamlSource {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: true });
  const problem = document.errors[0] ?? document.warnings[0];
  if (problem) {
    const { line, col } = lines.linePos(problem.pos[0]);
    const what =
      problem.code === "DUPLICATE_KEY"
        ? `the key "${wordAt(text, problem.pos[0])}" stands twice in one mapping; remove one`
        : `not valid YAML (column ${col}): ${firstLine(problem.message)}`;
    throw new ConfigError(`${file}:${Math.max(1, line)}: ${what}`);
  }
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: 100 });
  } catch (cause) {
    if (!(cause instanceof ReferenceError)) throw cause;
    throw new ConfigError(`${file}: aliases expand beyond reason or refer to nothing; write the values out`, {
      cause,
    });
  }
  const lineAt = (offset: number | undefined): number | undefined =>
    offset === undefined ? undefined : lines.linePos(offset).line;
  return {
    value,
    lineOf(path) {
      let node: unknown = document.contents;
      let line = 1;
      for (const key of path) {
        if (isAlias(node)) node = node.resolve(document);
        let child: unknown;
        if (isMap(node)) {
          child = node.items.find((pair) => isScalar(pair.key) && String(pair.key.value) === String(key));
        } else if (isSeq(node)) child = node.items[Number(key)];
        if (child === undefined) break;
        line = lineAt(startOf(child)) ?? line;
        node = isPair(child) ? child.value : child;
      }
      return line;
    },
  };
}

/** The value of one YAML scalar or flow collection, as written behind `--set key=`. Throws `ConfigError`. */
export function parseYamlValue(text: string, place: string): unknown {
  return parseYaml(text, place).value;
}

function startOf(child: unknown): number | undefined {
  const node = isPair(child) ? child.key : child;
  const range = (node as { range?: readonly number[] | null } | null)?.range;
  return range?.[0];
}

function wordAt(text: string, offset: number): string {
  return /^[^:\s]*/.exec(text.slice(offset))?.[0] ?? "";
}

function firstLine(message: string): string {
  return message.split("\n", 1)[0] as string;
}
