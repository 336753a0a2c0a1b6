/**
 * The server of `npm run bench -- orchestration`, in a process of its own: the Tinker protocol as `forager serve engine`
 * speaks it, over models that compute nothing (`null-backend.ts`), failing calls on request (`injected-faults.ts`). Answers
 * one JSON line to each JSON line (`../worker.ts`).
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createEngineApp } from "../../src/serving/engine/engine-app.ts";
import { engineLimitsWith } from "../../src/serving/engine/engine-limits.ts";
import { EngineService } from "../../src/serving/engine/engine-service.ts";
import { type RunningServer, startServer } from "../../src/serving/start-server.ts";
import { answerRequests } from "../answer-requests.ts";
import { Faults } from "./injected-faults.ts";
import { countData, nullBackend, seen } from "./null-backend.ts";

let ids = 0;
const faults = new Faults();
let server: RunningServer | undefined;
let service: EngineService | undefined;
let folder = "";

async function start(): Promise<object> {
  folder = await mkdtemp(join(tmpdir(), "forager-orchestration-"));
  service = await EngineService.open({
    backend: nullBackend,
    names: ["null"],
    folder,
    limits: engineLimitsWith({}),
    now: () => performance.now(),
    date: () => new Date(),
    newId: () => (++ids).toString(16).padStart(8, "0"),
    newSeed: () => 7,
    onFailure: (error) => process.stderr.write(`${String(error)}\n`),
  });
  const app = createEngineApp(service);
  server = await startServer(
    faults.wrap((request) => app.fetch(request)),
    { host: "127.0.0.1", port: 0 },
  );
  return { url: server.url };
}

interface Request {
  readonly op: string;
  readonly count?: number;
  readonly every?: number;
}

async function answer({ op, count = 0, every = 1 }: Request): Promise<object> {
  if (op === "start") return await start();
  if (op === "count") countData();
  if (op === "faults") faults.start(count, every);
  if (op === "close") {
    await server?.close();
    await service?.close();
    await rm(folder, { recursive: true, force: true });
  }
  const processorSeconds = process.cpuUsage().user / 1e6 + process.cpuUsage().system / 1e6;
  return {
    ...seen,
    faults: faults.injected,
    faultsLeft: faults.left,
    rss: process.memoryUsage.rss(),
    processorSeconds,
  };
}

await answerRequests(answer);
