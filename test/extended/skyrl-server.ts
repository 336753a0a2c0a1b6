/**
 * Starts the real SkyRL server on CPU. It needs an installation that `../shared/skyrl/server.sh DIR` made (about 2 GB, with
 * Python 3.11), named by FORAGER_SKYRL=DIR.
 */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const folder = process.env.FORAGER_SKYRL;

/** Why the server cannot be started; undefined where it can. */
export function skyrlMissing(): string | undefined {
  if (folder === undefined)
    return "needs SkyRL: run ../shared/skyrl/server.sh DIR once (Python 3.11, 2 GB), then set FORAGER_SKYRL=DIR";
  return existsSync(join(folder, "proj", ".venv")) ? undefined : `${folder} holds no installation of SkyRL`;
}

export interface SkyrlServer {
  readonly url: string;
  /** What it printed. */
  output(): string;
  stop(): Promise<void>;
}

/** A server with the model in `baseModel`; ready once it answers. */
export async function startSkyrl(
  baseModel: string,
  backend: Readonly<Record<string, unknown>>,
): Promise<SkyrlServer> {
  const home = folder as string;
  const state = await mkdtemp(join(tmpdir(), "forager-skyrl-"));
  const port = await freePort();
  const child = spawn(
    "uv",
    [
      ..."run --extra tinker --extra jax -m skyrl.tinker.api --backend jax --host 127.0.0.1".split(" "),
      ...["--base-model", baseModel, "--port", `${port}`],
      ...[
        "--database-url",
        `sqlite:///${join(state, "t.db")}`,
        "--checkpoints-base",
        join(state, "checkpoints"),
      ],
      ...["--backend-config", JSON.stringify(backend)],
    ],
    {
      cwd: join(home, "proj"),
      detached: true,
      env: {
        ...process.env,
        PATH: `${join(home, "boot", "bin")}:${process.env.PATH}`,
        HF_HUB_OFFLINE: "1",
        JAX_PLATFORMS: "cpu",
        UV_FROZEN: "1",
        PYTHONPATH: join(home, "patch"),
      },
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text: Buffer) => (output += text));
  const stop = async (): Promise<void> => {
    // The engine is a child of its own; both are of this group.
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, "SIGTERM");
    await sleep(2000);
    await rm(state, { recursive: true, force: true });
  };
  const url = `http://127.0.0.1:${port}`;
  for (let waited = 0; waited < 120; waited++) {
    const answer = await fetch(`${url}/api/v1/healthz`).catch(() => undefined);
    if (answer?.ok) return { url, output: () => output, stop };
    if (child.exitCode !== null) break;
    await sleep(1000);
  }
  await stop();
  throw new Error(`SkyRL did not start:\n${output.slice(-3000)}`);
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address ? address.port : 0));
    });
  });
}
