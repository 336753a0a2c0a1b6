/** `docs/recipes.md`, made from the schema: every key with its type, range, default and effect. */
import { recipeSchema } from "./recipe.ts";
import { discriminatorOf, type SchemaNode, schemaTree, variants } from "./schema-tree.ts";

/** The documentation of recipes as Markdown. */
export function recipeMarkdown(): string {
  const rows = Object.entries(schemaTree(recipeSchema).properties ?? {}).flatMap(([key, node]) => [
    "",
    `## ${key}`,
    "",
    `${node.description ?? ""}${defaultText(node)}`,
    ...keyTable(node),
  ]);
  return [
    "# Recipes",
    "",
    "A recipe is one YAML file that says everything a training depends on. Unknown keys are errors. Any key can be",
    "overridden on the command line by its path, stages by their name: `--set stages.grpo.steps=3`. Relative paths in a",
    "recipe start from its own folder, those of an override from the current one. `forager train RECIPE --dry-run`",
    "prints the recipe with every default filled in. This file is made from `src/config/recipe.ts`.",
    ...rows,
    "",
  ].join("\n");
}

interface Row {
  readonly path: string;
  readonly node: SchemaNode;
  readonly isRequired: boolean;
}

function keyTable(node: SchemaNode): readonly string[] {
  const rows = rowsOf(node, "");
  if (rows.length === 0) return [`\nType: ${typeText(node)}.`];
  return [
    "",
    "| key | type | default | meaning |",
    "| --- | --- | --- | --- |",
    ...rows.map((row) => {
      const standard = row.isRequired ? "required" : defaultCell(row.node);
      return `| \`${row.path}\` | ${typeText(row.node)} | ${standard} | ${cell(row.node.description ?? "")} |`;
    }),
  ];
}

/** The keys below `node`; those of a union carry the name of their variant, such as `(files) corpus`. */
function rowsOf(node: SchemaNode, prefix: string): readonly Row[] {
  if (node.items !== undefined) return rowsOf(node.items, prefix);
  const key = discriminatorOf(node);
  return variants(node).flatMap((variant) => {
    const tag = key === undefined ? "" : `${prefix}(${String(variant.properties?.[key]?.const)}) `;
    return Object.entries(variant.properties ?? {}).flatMap(([name, child]) => {
      const path = key === undefined ? `${prefix}${name}` : `${tag}${name}`;
      const isRequired = variant.required?.includes(name) === true;
      return [{ path, node: child, isRequired }, ...rowsOf(child, `${path}.`)];
    });
  });
}

function typeText(node: SchemaNode): string {
  if (node.const !== undefined) return `\`${String(node.const)}\``;
  if (node.enum !== undefined) return node.enum.map((value) => `\`${String(value)}\``).join(", ");
  const key = discriminatorOf(node);
  if (key !== undefined)
    return `by \`${key}\`: ${variants(node)
      .map((variant) => `\`${String(variant.properties?.[key]?.const)}\``)
      .join(", ")}`;
  if (variants(node).length > 1) return [...new Set(variants(node).map(typeText))].join(" or ");
  if (node.items !== undefined) return `list of ${typeText(node.items)}`;
  return `${typeNames[node.type ?? ""] ?? "any value"}${rangeText(node)}`;
}

const typeNames: Readonly<Record<string, string>> = {
  integer: "whole number",
  number: "number",
  string: "text",
  boolean: "true or false",
  object: "mapping",
};

/** Zod bounds every integer by the safe ones, which says nothing. */
function rangeText({ minimum, maximum, exclusiveMinimum, exclusiveMaximum }: SchemaNode): string {
  const parts = [
    bound(minimum, "≥"),
    bound(exclusiveMinimum, ">"),
    bound(maximum, "≤"),
    bound(exclusiveMaximum, "<"),
  ].filter((part) => part !== undefined);
  return parts.length === 0 ? "" : ` ${parts.join(" and ")}`;
}

function bound(value: number | undefined, sign: string): string | undefined {
  return value === undefined || Math.abs(value) === Number.MAX_SAFE_INTEGER ? undefined : `${sign} ${value}`;
}

function defaultText(node: SchemaNode): string {
  return node.default === undefined || typeof node.default === "object"
    ? ""
    : ` Default: ${JSON.stringify(node.default)}.`;
}

function defaultCell({ default: value }: SchemaNode): string {
  if (value === undefined) return "absent";
  return typeof value === "object" && !Array.isArray(value) && Object.keys(value ?? {}).length === 0
    ? "as below"
    : `\`${JSON.stringify(value)}\``;
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("\n", " ");
}
