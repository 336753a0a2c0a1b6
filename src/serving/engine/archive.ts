/**
 * A checkpoint as a compressed tar (POSIX ustar), made while it is sent: what PEFT or transformers open, without the
 * optimiser's state, which is ours alone.
 */
import { createReadStream } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { createGzip } from "node:zlib";

const blockBytes = 512;

export async function archiveOf(folder: string): Promise<ReadableStream<Uint8Array>> {
  const names = (await readdir(folder)).filter((name) => !name.startsWith("optimizer.")).sort();
  const packed = Readable.from(entries(folder, names)).pipe(createGzip({ level: 1 }));
  return Readable.toWeb(packed) as ReadableStream<Uint8Array>;
}

async function* entries(folder: string, names: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const name of names) {
    const path = join(folder, name);
    const { size } = await stat(path);
    yield header(name, size);
    yield* createReadStream(path) as AsyncIterable<Uint8Array>;
    yield new Uint8Array((blockBytes - (size % blockBytes)) % blockBytes);
  }
  yield new Uint8Array(2 * blockBytes);
}

/** Of a plain file, readable by all, of no one and no time, so that equal folders give equal archives. */
function header(name: string, size: number): Uint8Array {
  const block = Buffer.alloc(blockBytes);
  const octal = (value: number, digits: number): string => value.toString(8).padStart(digits, "0");
  block.write(name, 0, 100);
  block.write(`${octal(0o644, 7)}\0${octal(0, 7)}\0${octal(0, 7)}\0`, 100);
  block.write(`${octal(size, 11)}\0${octal(0, 11)}\0`, 124);
  block.write("        0", 148);
  block.write("ustar\0", 257);
  block.write("00", 263);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${octal(sum, 6)}\0 `, 148);
  return block;
}
