/** Starts a thread of this program, from source or from the built package. */
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";

/**
 * A worker that runs `name` (without ending), a file beside the module at the URL `beside`. From source, as in development and
 * tests, it needs a loader of TypeScript; the package does not.
 */
export function startThread(name: string, beside: string, workerData: unknown): Worker {
  if (!import.meta.url.endsWith(".ts")) return new Worker(new URL(`./${name}.js`, beside), { workerData });
  const loader = pathToFileURL(
    createRequire(import.meta.url)
      .resolve("tsx/esm/api")
      .replace(/cjs$/, "mjs"),
  ).href;
  const file = new URL(`./${name}.ts`, beside).href;
  const code = `import(${JSON.stringify(loader)}).then(({ tsImport }) => tsImport(${JSON.stringify(file)}, ${JSON.stringify(file)}))`;
  return new Worker(code, { workerData, eval: true });
}
