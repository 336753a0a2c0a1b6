/**
 * The tokenizer of the model on a server: where the server says it is, if that is on this machine, else out of the archive of a
 * snapshot, where one holds it. `forager serve engine` does both; SkyRL neither.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EngineError } from "../../errors.ts";
import { exists } from "../../shared/files.ts";
import { readTokenizer, type WritableTokenizer } from "../../tokenizer/tokenizer-file.ts";
import { fetchArchive } from "./adapter-archive.ts";
import { readAnswer } from "./answers.ts";
import type { RemoteModel } from "./remote-model.ts";
import type { ModelWanted, Session } from "./session.ts";

export interface ServerTokenizer {
  readonly tokenizer: WritableTokenizer;
  /** Where it lies on this machine; absent: it came with an archive. */
  readonly folder?: string;
}

/** Asks with a model of its own, which is unloaded again; undefined where the server does not hand it out. Throws `EngineError`. */
export async function serverTokenizer(
  session: Session,
  wanted: ModelWanted,
): Promise<ServerTokenizer | undefined> {
  const { ranks } = session.connection.profile;
  // Adapters make a smaller archive than all weights.
  const rank = ranks === "both" ? 1 : wanted.rank;
  const model = await session.createModel({ ...wanted, rank });
  try {
    const folder = await toldFolder(model);
    if (folder !== undefined) return { tokenizer: await readTokenizer(folder), folder };
    const tokenizer = await archivedTokenizer(model);
    return tokenizer && { tokenizer };
  } finally {
    await session.unload(model);
  }
}

/** A folder of this machine that the server names. */
async function toldFolder({ connection, id }: RemoteModel): Promise<string | undefined> {
  const path = "get_info";
  try {
    const answer = await connection.call({ path, body: { model_id: id, type: path }, repeat: "always" });
    const folder = readAnswer(connection, path, answer).model_data.tokenizer_id;
    const isHere = typeof folder === "string" && (await exists(join(folder, "tokenizer.json")));
    return isHere ? folder : undefined;
  } catch (error) {
    if (error instanceof EngineError && (error.kind === "gone" || error.kind === "rejected"))
      return undefined;
    throw error;
  }
}

async function archivedTokenizer(model: RemoteModel): Promise<WritableTokenizer | undefined> {
  const { connection } = model;
  if (connection.profile.archive === "none") return undefined;
  const checkpoint = "tokenizer";
  await model.run("save_weights_for_sampler", { path: checkpoint });
  const files = await fetchArchive(connection, { modelId: model.id, checkpoint });
  if (!files.has("tokenizer.json")) return undefined;
  const folder = await mkdtemp(join(tmpdir(), "forager-tokenizer-"));
  try {
    for (const name of ["tokenizer.json", "tokenizer_config.json", "generation_config.json"]) {
      const content = files.get(name);
      if (content !== undefined) await writeFile(join(folder, name), content);
    }
    return await readTokenizer(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
