/**
 * The recipe schema as a tree that can be walked: which keys a place knows, and what they mean. Made from the
 * JSON Schema that zod derives, so that error messages and `docs/recipes.md` can never disagree with the schema.
 */
import { z } from "zod";

/** The parts of JSON Schema (draft 2020-12) that zod emits for recipes. */
export interface SchemaNode {
  readonly description?: string;
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly required?: readonly string[];
  readonly items?: SchemaNode;
  readonly oneOf?: readonly SchemaNode[];
  readonly anyOf?: readonly SchemaNode[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly minItems?: number;
}

/** The tree of what a user may write (defaults not yet filled in). */
export function schemaTree(schema: z.ZodType): SchemaNode {
  return z.toJSONSchema(schema, { io: "input" }) as SchemaNode;
}

/** The variants of a union, or the node itself. */
export function variants(node: SchemaNode): readonly SchemaNode[] {
  return node.oneOf ?? node.anyOf ?? [node];
}

/** The key by which the variants of a union are told apart, such as `type`; undefined for other nodes. */
export function discriminatorOf(node: SchemaNode): string | undefined {
  if (variants(node).length < 2) return undefined;
  const first = variants(node)[0]?.properties ?? {};
  return Object.keys(first).find((key) =>
    variants(node).every((variant) => variant.properties?.[key]?.const !== undefined),
  );
}

/** The node at `path`; `value` (what the user wrote, from the root) decides between variants of a union. */
export function nodeAt(
  root: SchemaNode,
  path: readonly PropertyKey[],
  value: unknown,
): SchemaNode | undefined {
  let node: SchemaNode | undefined = chosenVariant(root, value);
  let here = value;
  for (const key of path) {
    here = (here as Record<PropertyKey, unknown> | null | undefined)?.[key];
    const child: SchemaNode | undefined =
      typeof key === "number" ? node?.items : node?.properties?.[String(key)];
    if (child === undefined) return undefined;
    node = chosenVariant(child, here);
  }
  return node;
}

/** The keys that the mapping at `path` may hold, in the order of the schema. */
export function knownKeys(root: SchemaNode, path: readonly PropertyKey[], value: unknown): readonly string[] {
  return Object.keys(nodeAt(root, path, value)?.properties ?? {});
}

function chosenVariant(node: SchemaNode, value: unknown): SchemaNode {
  const key = discriminatorOf(node);
  if (key === undefined) return variants(node).length === 1 ? (variants(node)[0] as SchemaNode) : node;
  const tag = (value as Record<string, unknown> | null | undefined)?.[key];
  const chosen = variants(node).find((variant) => {
    const property = variant.properties?.[key];
    return property?.const === tag || (tag === undefined && property?.default !== undefined);
  });
  return chosen ?? node;
}
