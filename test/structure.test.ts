/**
 * The shape of the source: rooms import only from rooms above them in the table of AGENTS.md, files import each
 * other without cycles, and only leaves are shared. Type-only imports count like any other.
 */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import ts from "typescript";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "..");
const source = join(root, "src");
const leaves = ["errors.ts", "shared"];

/** Rooms in the order of the table in AGENTS.md; `web` comes last. */
const rooms = [
  ...[...readFileSync(join(root, "AGENTS.md"), "utf8").matchAll(/^\| `(\w+)\/`/gm)].map((match) => match[1]),
  "web",
];

/** Files under `src/`, each with the files under `src/` it imports; paths relative to `src/`. */
const imports = new Map<string, readonly string[]>(
  readdirSync(source, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => [file, importsOf(file)]),
);

function importsOf(file: string): readonly string[] {
  return ts
    .preProcessFile(readFileSync(join(source, file), "utf8"), true, true)
    .importedFiles.map(({ fileName }) => fileName)
    .filter((name) => name.startsWith("."))
    .map((name) => relative(source, join(source, dirname(file), name)));
}

function roomOf(file: string): string {
  return file.split("/", 1)[0] as string;
}

test("every folder of src is a room of the table in AGENTS.md or a leaf", () => {
  expect(rooms.length).toBeGreaterThan(10);
  const strangers = [...imports.keys()].map(roomOf).filter((room) => !room.endsWith(".ts"));
  expect(strangers.filter((room) => !rooms.includes(room) && !leaves.includes(room))).toEqual([]);
});

test("rooms import only from rooms above them and from leaves", () => {
  const wrong: string[] = [];
  for (const [file, targets] of imports) {
    if (file === "index.ts") continue;
    for (const target of targets) if (!mayImport(file, target)) wrong.push(`${file} imports ${target}`);
  }
  expect(wrong).toEqual([]);
});

function mayImport(file: string, target: string): boolean {
  const from = roomOf(file);
  const to = roomOf(target);
  if (to === from || leaves.includes(to)) return true;
  if (to === "..") return /\.(test|suite)\.ts$/.test(file);
  return rooms.includes(to) && rooms.indexOf(to) < rooms.indexOf(from);
}

test("imports form no cycle", () => {
  const state = new Map<string, "open" | "done">();
  const cycles: string[] = [];
  const visit = (file: string, trail: readonly string[]): void => {
    if (state.get(file) === "done") return;
    if (state.get(file) === "open") {
      cycles.push([...trail.slice(trail.indexOf(file)), file].join(" -> "));
      return;
    }
    state.set(file, "open");
    for (const target of imports.get(file) ?? []) visit(target, [...trail, file]);
    state.set(file, "done");
  };
  for (const file of imports.keys()) visit(file, []);
  expect(cycles).toEqual([]);
});

/** What a file loads when it is itself loaded: no types, and nothing that it imports inside a function. */
function loadedBy(file: string): readonly string[] {
  const text = readFileSync(join(source, file), "utf8");
  const { statements } = ts.createSourceFile(file, text, ts.ScriptTarget.Latest);
  return statements.flatMap((statement) => {
    if (!ts.isImportDeclaration(statement) && !ts.isExportDeclaration(statement)) return [];
    const isType = ts.isImportDeclaration(statement)
      ? statement.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword
      : statement.isTypeOnly;
    const target = isType ? undefined : statement.moduleSpecifier;
    return target !== undefined && ts.isStringLiteral(target) ? [target.text] : [];
  });
}

/** The npm packages among all that loading `file` loads. */
function packagesLoadedBy(file: string): readonly string[] {
  const packages = new Set<string>();
  const seen = new Set<string>();
  const visit = (visited: string): void => {
    if (seen.has(visited)) return;
    seen.add(visited);
    for (const name of loadedBy(visited))
      if (name.startsWith(".")) visit(relative(source, join(source, dirname(visited), name)));
      else if (!name.startsWith("node:")) packages.add(name);
  };
  visit(file);
  return [...packages].sort();
}

test("the command line starts with the packages that every command needs, and no others", () => {
  expect(packagesLoadedBy("engine/embedded-engine.ts")).toContain("koffi");
  expect(packagesLoadedBy("cli/main.ts")).toEqual([
    "countries-list",
    "countries-list/currencies",
    "yaml",
    "zod",
  ]);
});
