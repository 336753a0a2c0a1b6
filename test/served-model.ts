/** For tests: an embedded model behind the server of `forager serve engine`, on a socket of this process. */
import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { openEmbeddedBackend } from "../src/serving/engine/embedded-backend.ts";
import { createEngineApp } from "../src/serving/engine/engine-app.ts";
import { engineLimitsWith } from "../src/serving/engine/engine-limits.ts";
import { EngineService } from "../src/serving/engine/engine-service.ts";
import { startServer } from "../src/serving/start-server.ts";

export interface ServedModel {
  readonly url: string;
  close(): Promise<void>;
}

let ids = 0;

/** Serves the model in `base`, called `name`; its state lies in a new folder of `folder`. */
export async function serveModel(base: string, folder: string, name = "tiny"): Promise<ServedModel> {
  const sizes = { cacheMemory: 2 ** 27, memoryBudget: 2 ** 30, maxSlots: 16 };
  const backend = await openEmbeddedBackend(base, { threads: 1, ...sizes });
  const service = await EngineService.open({
    backend,
    names: [name],
    folder: await mkdtemp(join(folder, "state-")),
    limits: engineLimitsWith({ holdMs: 2_000 }),
    now: () => performance.now(),
    date: () => new Date(),
    newId: () => String(++ids).padStart(8, "0"),
    newSeed: () => 7,
    onFailure: () => undefined,
  });
  const server = await startServer(createEngineApp(service).fetch, {
    host: "127.0.0.1",
    port: 0,
    graceMs: 1000,
  });
  return {
    url: server.url,
    close: async () => {
      await server.close();
      await service.close();
      await backend.close();
    },
  };
}
