/** Where the installed package lies and what it is called; the same from `src/` and from `dist/`. */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..");

/** Absolute path of a file that ships with the package, such as `recipes/quickstart.yaml`. */
export function packagePath(...parts: readonly string[]): string {
  return join(root, ...parts);
}

/** The version in `package.json`. */
export function packageVersion(): string {
  const { version } = JSON.parse(readFileSync(packagePath("package.json"), "utf8")) as { version: string };
  return version;
}
