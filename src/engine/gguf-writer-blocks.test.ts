// Encoders of weights against the Python packages `gguf` and `torch`: test/golden/gguf-writer/ and its script.
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { readGgufHeader } from "./gguf-header.ts";
import { ggufEncodings } from "./gguf-writer-blocks.ts";
import { readSafetensors, SafetensorsFile } from "./safetensors.ts";
import { encodedLength, encodePieces, floatEncodings, floatTypes } from "./tensor-encoding.ts";
import { OpenFile, type TensorEntry } from "./tensor-file.ts";

const golden = (name: string): string =>
  fileURLToPath(new URL(`../../test/golden/gguf-writer/${name}`, import.meta.url));

async function stored(file: OpenFile, entry: TensorEntry | undefined): Promise<Uint8Array> {
  if (!entry) throw new Error("the golden lacks a tensor");
  const bytes = new Uint8Array(entry.end - entry.start);
  await file.read(bytes, entry.start);
  return bytes;
}

test.each(["Q8_0", "Q4_0", "Q4_1"] as const)("%s blocks are those of the Python package", async (type) => {
  const file = await OpenFile.open(golden("encoded.gguf"));
  onTestFinished(() => file.close());
  const { tensors } = await readGgufHeader(file);
  const { data } = await file.readFloats(tensors.get("values") as TensorEntry);
  const encoded = ggufEncodings[type].encode(data);
  expect(encoded).toHaveLength(encodedLength(data.length, ggufEncodings[type]));
  expect(encoded).toEqual(await stored(file, tensors.get(type)));
});

test.each(floatTypes)("%s values are those of PyTorch, ties, subnormals and all", async (type) => {
  const path = golden("halves.safetensors");
  const source = await SafetensorsFile.open(path);
  const file = await OpenFile.open(path);
  onTestFinished(() => source.close());
  onTestFinished(() => file.close());
  const values = (await readSafetensors(path)).get("F32")?.data ?? new Float32Array();
  const encoded = floatEncodings[type].encode(values);
  const expected = await stored(file, source.tensors.get(type));
  if (type === "F32") return expect(encoded).toEqual(expected);
  // What is no number may have any payload; it must stay none.
  const [ours, theirs] = [encoded, expected].map((bytes) => new Uint16Array(bytes.slice().buffer));
  for (const [i, value] of values.entries())
    if (!Number.isNaN(value)) expect([value, ours?.[i]]).toEqual([value, theirs?.[i]]);
  const infinity = type === "F16" ? 0x7c00 : 0x7f80;
  const place = values.findIndex(Number.isNaN);
  expect((ours?.[place] as number) & 0x7fff).toBeGreaterThan(infinity);
});

test("a long array is encoded in pieces, and a signal stops between two", () => {
  const data = new Float32Array((1 << 20) + 64);
  const lengths = [...encodePieces(data, ggufEncodings.Q8_0)].map((piece) => piece.length);
  expect(lengths).toEqual([encodedLength(1 << 20, ggufEncodings.Q8_0), 68]);
  const controller = new AbortController();
  const pieces = encodePieces(data, floatEncodings.F16, controller.signal)[Symbol.iterator]();
  pieces.next();
  controller.abort();
  expect(() => pieces.next()).toThrow("abort");
});
