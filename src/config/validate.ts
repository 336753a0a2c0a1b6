/** A value of the user through a schema; the first thing wrong becomes one `ConfigError` line with its place. */
import type { z } from "zod";
import { ConfigError } from "../errors.ts";
import { dotted, explainIssue, issuePath, shownPath } from "./explain-issue.ts";
import { type AppliedOverride, applyOverrides } from "./overrides.ts";
import { schemaTree } from "./schema-tree.ts";

/** Returns what `schema` makes of `value`. `placeOf` says where the value at a path was written. Throws `ConfigError`. */
export function validate<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  placeOf: (path: readonly PropertyKey[]) => string,
): z.output<Schema> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issues = [...result.error.issues].sort((a, b) => rank(a.code) - rank(b.code));
  const issue = issues[0] as (typeof issues)[number];
  const path = issuePath(issue);
  const rest = issues.slice(1).map((other) => shownPath(issuePath(other), value));
  const more = rest.length === 0 ? "" : ` (and ${rest.length} more: ${rest.slice(0, 4).join(", ")})`;
  throw new ConfigError(`${placeOf(path)}: ${explainIssue(issue, schemaTree(schema), value)}${more}`, {
    path: dotted(path),
  });
}

/** The options of one room from `key=value` words alone. Throws `ConfigError`. */
export function optionsFromOverrides<Schema extends z.ZodType>(
  schema: Schema,
  overrides: readonly string[],
): z.output<Schema> {
  const { value, applied } = applyOverrides({}, overrides);
  const placeOf = (path: readonly PropertyKey[]): string | undefined =>
    overridePlace(applied, path) ?? overrideBelow(applied, path);
  return validate(schema, value, (path) => placeOf(path) ?? placeOf(path.slice(0, -1)) ?? "--set");
}

/** `--set key=value` of the last override that wrote at or above `path`; undefined when none did. */
export function overridePlace(
  applied: readonly AppliedOverride[],
  path: readonly PropertyKey[],
): string | undefined {
  const override = applied.findLast(({ path: set }) => set.every((key, i) => key === path[i]));
  return override && `--set ${override.text}`;
}

/** `--set key.below=value` of the last override that wrote below `path`, which made the key where nothing else did. */
export function overrideBelow(
  applied: readonly AppliedOverride[],
  path: readonly PropertyKey[],
): string | undefined {
  const override =
    path.length === 0
      ? undefined
      : applied.findLast(({ path: set }) => path.every((key, i) => key === set[i]));
  return override && `--set ${override.text}`;
}

/** Unknown keys first: a mistyped key is often the reason why another one is missing. */
function rank(code: string): number {
  return code === "unrecognized_keys" ? 0 : 1;
}
