/** The tokenizer of the model on a server, which `forager serve engine` hands out; other servers do not. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EngineError } from "../../errors.ts";
import { readTokenizer, type WritableTokenizer } from "../../tokenizer/tokenizer-file.ts";
import { readAnswer } from "./answers.ts";
import type { Connection } from "./connection.ts";

/** Undefined where the server does not hand it out. Throws `EngineError`, `DataFormatError`. */
export async function fetchTokenizer(connection: Connection): Promise<WritableTokenizer | undefined> {
  const told = await askTokenizer(connection);
  if (told === undefined) return undefined;
  const folder = await mkdtemp(join(tmpdir(), "forager-tokenizer-"));
  try {
    await writeFile(join(folder, "tokenizer.json"), JSON.stringify(told.model));
    await writeFile(join(folder, "tokenizer_config.json"), JSON.stringify(told.config));
    const tokenizer = await readTokenizer(folder);
    if (tokenizer.hash === told.hash) return tokenizer;
    throw new EngineError(
      `${connection.url}: the tokenizer has the hash ${told.hash.slice(0, 12)} there and ${tokenizer.hash.slice(0, 12)} here; both sides need the same version of Forager`,
      { kind: "malformed" },
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** What the server says of its tokenizer; undefined where it has no such route. */
export async function askTokenizer(connection: Connection) {
  const path = "tokenizer";
  try {
    return readAnswer(connection, path, await connection.call({ method: "GET", path, repeat: "always" }));
  } catch (error) {
    if (error instanceof EngineError && (error.kind === "gone" || error.kind === "rejected"))
      return undefined;
    throw error;
  }
}
