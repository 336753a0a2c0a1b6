import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CheckpointError, FileError } from "../errors.ts";
import { readSafetensors, writeSafetensors } from "./safetensors.ts";

let folder: string;
let path: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-safetensors-"));
  path = join(folder, "tensors.safetensors");
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const tensors = new Map([
  ["first", { shape: [2, 3], data: Float32Array.of(1, -2, 3.5, 0, -0, 1e-40) }],
  ["scale", { shape: [2], data: Float32Array.of(Number.NaN, Number.POSITIVE_INFINITY) }],
]);
const entry = { dtype: "F32", shape: [2], data_offsets: [0, 8] };

/** A file by the letter of the format: length, header, values. */
async function writeRaw(header: unknown, setting: { length?: bigint; bytes?: number } = {}): Promise<void> {
  const json = Buffer.from(typeof header === "string" ? header : JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(setting.length ?? BigInt(json.length));
  await writeFile(path, Buffer.concat([length, json, Buffer.alloc(setting.bytes ?? 8)]));
}

async function expectRefused(problem: string): Promise<void> {
  const call = readSafetensors(path);
  await expect(call).rejects.toThrow(CheckpointError);
  await expect(call).rejects.toThrow(problem);
  await expect(call).rejects.toThrow(path);
}

describe("safetensors", () => {
  test("any float32 values come back bit for bit, in order", async () => {
    await writeSafetensors(path, tensors);
    const read = await readSafetensors(path);
    expect([...read.keys()]).toEqual(["first", "scale"]);
    for (const [name, { shape, data }] of tensors) {
      expect(read.get(name)?.shape).toEqual(shape);
      expect(read.get(name)?.data).toEqual(data);
    }
  });

  test("a part of a larger array is written alone, and an empty array too", async () => {
    const whole = Float32Array.of(1, 2, 3, 4);
    await writeSafetensors(
      path,
      new Map([
        ["part", { shape: [2], data: whole.subarray(1, 3) }],
        ["none", { shape: [0, 4], data: new Float32Array() }],
      ]),
    );
    const read = await readSafetensors(path);
    expect(read.get("part")?.data).toEqual(Float32Array.of(2, 3));
    expect(read.get("none")).toEqual({ shape: [0, 4], data: new Float32Array() });
  });

  test("the header is padded so that values start at a multiple of eight bytes", async () => {
    for (const name of ["a", "ab", "abc", "abcdefgh"]) {
      await writeSafetensors(path, new Map([[name, { shape: [1], data: Float32Array.of(1) }]]));
      expect(Number((await readFile(path)).readBigUInt64LE()) % 8).toBe(0);
    }
  });

  test("reads a file by the letter of the format", async () => {
    await writeRaw({ __metadata__: { format: "pt" }, weight: entry });
    expect(await readSafetensors(path)).toEqual(
      new Map([["weight", { shape: [2], data: new Float32Array(2) }]]),
    );
  });

  test("a file that is not there is a file error", async () => {
    await expect(readSafetensors(join(folder, "absent"))).rejects.toThrow(FileError);
  });

  test("a file cut anywhere is refused as damaged", async () => {
    await writeSafetensors(path, tensors);
    const whole = await readFile(path);
    const cut = join(folder, "cut.safetensors");
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: whole.length - 1 }), async (length) => {
        await writeFile(cut, whole.subarray(0, length));
        await expect(readSafetensors(cut)).rejects.toThrow(
          /cut\.safetensors is no usable safetensors file: it/,
        );
      }),
    );
  });

  test("each lie of a header is named", async () => {
    await writeFile(path, "short");
    await expectRefused("it has 5 bytes, fewer than the 8 of its first field");
    await writeRaw({ weight: entry }, { length: 2n ** 62n });
    await expectRefused(`its header should have ${2n ** 62n} bytes`);
    await writeRaw("not json");
    await expectRefused("its header is not JSON");
    for (const header of [null, 5, [entry]]) {
      await writeRaw(header);
      await expectRefused("its header is not an object");
    }
    for (const wrong of [5, {}, { ...entry, shape: [-2] }, { ...entry, data_offsets: [0] }]) {
      await writeRaw({ weight: wrong });
      await expectRefused("the entry of weight is malformed");
    }
    await writeRaw({ weight: { ...entry, shape: [3] } });
    await expectRefused("weight has 8 bytes; F32 of shape [3] needs 12");
    await writeRaw({ weight: { ...entry, data_offsets: [8, 0] } });
    await expectRefused("weight has -8 bytes; F32 of shape [2] needs 8");
    await writeRaw({ weight: { ...entry, data_offsets: [4, 12] } });
    await expectRefused("it ends in the middle of weight");
    const half = { ...entry, shape: [1], data_offsets: [0, 4] };
    await writeRaw({ weight: half, other: half });
    await expectRefused("other overlaps weight");
    await writeRaw({ weight: half });
    await expectRefused("4 bytes after weight belong to nothing");
    await writeRaw({ weight: { ...half, data_offsets: [4, 8] } });
    await expectRefused("4 bytes between the header and weight belong to nothing");
  });

  test("another type of values is refused with what to do", async () => {
    await writeRaw({ weight: { ...entry, dtype: "F8_E4M3", data_offsets: [0, 2] } });
    await expectRefused("weight holds values of type F8_E4M3, only F32, F16 and BF16 are supported; convert");
  });
});
