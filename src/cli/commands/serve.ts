/** `forager serve`: a server over what was built, until it is told to stop; one file in `serve/` for each kind. */
import { UsageError } from "../../errors.ts";
import { defineCommand } from "../command.ts";
import { engineFlags, serveEngine } from "../serve/serve-engine.ts";
import { retrieverFlags, serveRetriever } from "../serve/serve-retriever.ts";
import { type ServeHost, serverFlags } from "../serve/serve-until-stopped.ts";

export type { ServeHost } from "../serve/serve-until-stopped.ts";

const options = { ...serverFlags, ...retrieverFlags, ...engineFlags } as const;

/** Options that only one kind has. */
const ownFlags = { retriever: retrieverFlags, engine: engineFlags } as const;
type Kind = keyof typeof ownFlags;

export const serveCommand = serveCommandOn(process);

/** The command in a process; tests give one of their own. */
export function serveCommandOn(host: ServeHost) {
  return defineCommand({
    name: "serve",
    summary: "Serve an index or a model over HTTP, in the dialects of existing training scripts.",
    details:
      "KIND retriever serves an INDEX: POST /retrieve, /search, /batch_search, /access and, with --rerank,\n" +
      "/rerank; GET /v1/NAME/search, /health, /stats, /metrics, /openapi.yaml; see docs/serving.md.\n" +
      "KIND engine serves --model to be trained and sampled over the Tinker protocol; see docs/engine-server.md.\n" +
      "Prints one JSON line with url when it is ready.",
    args: [
      { name: "KIND", doc: "what is served: retriever or engine" },
      {
        name: "INDEX",
        doc: "of a retriever: a folder made by forager index, or s3://BUCKET/PREFIX",
        isOptional: true,
      },
    ],
    options,
    examples: [
      "serve retriever my-index --port 8000",
      "serve retriever my-index --api-key-env FORAGER_KEY",
      "serve engine --model smollm2-135m --port 8000",
    ],
    async run({ args, options }, io) {
      const [kind, folder] = args as [string, string | undefined];
      if (!isKind(kind))
        throw new UsageError(
          `serve: expected what to serve, retriever or engine, got "${kind}" (see forager serve --help)`,
        );
      requireOwnFlags(kind, options);
      if ((options.port ?? 0) > 65_535)
        throw new UsageError(`serve: --port must be at most 65535, got ${options.port}`);
      if (kind === "retriever") return await serveRetriever(folder, options, { host, io });
      if (folder !== undefined)
        throw new UsageError(`serve engine: the base is named by --model, got "${folder}" beside it`);
      return await serveEngine(options, { host, io });
    },
  });
}

function isKind(kind: string): kind is Kind {
  return Object.hasOwn(ownFlags, kind);
}

/** Refuses what the other kind has: no option is ignored. */
function requireOwnFlags(kind: Kind, given: Readonly<Record<string, unknown>>): void {
  const other = kind === "engine" ? "retriever" : "engine";
  for (const name of Object.keys(ownFlags[other])) {
    const value = given[name];
    if (value === undefined || value === false || (Array.isArray(value) && value.length === 0)) continue;
    throw new UsageError(`serve ${kind}: --${name} belongs to serve ${other}; leave it out`);
  }
}
