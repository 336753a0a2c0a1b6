import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DataFormatError } from "../../errors.ts";
import { decodeText } from "./decode.ts";
import { jsonValues } from "./json-values.ts";
import { lineBatches } from "./text-lines.ts";

/** The bytes in pieces that end at the given places. */
async function* cut(bytes: Uint8Array, ends: readonly number[]): AsyncGenerator<Uint8Array> {
  const places = [...new Set([0, ...ends.map((end) => end % (bytes.length + 1)), bytes.length])].sort(
    (a, b) => a - b,
  );
  for (let i = 1; i < places.length; i++) yield bytes.subarray(places[i - 1], places[i]);
}

async function linesOf(
  bytes: Uint8Array,
  ends: readonly number[] = [],
  encoding?: string,
): Promise<unknown[]> {
  const lines: unknown[] = [];
  for await (const batch of lineBatches(cut(bytes, ends), { path: "f", encoding })) {
    expect(batch.first).toBe(lines.length + 1);
    for (const line of batch.lines) lines.push(line);
  }
  return lines;
}

const ends = fc.array(fc.nat(), { maxLength: 8 });
const line = fc.string({ unit: "grapheme", maxLength: 12 }).filter((text) => !/[\r\n\ufeff]/.test(text));

describe("lines", () => {
  test("are the same however the bytes are cut, with any line ends", async () => {
    const ending = fc.constantFrom("\n", "\r\n", "\r");
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(line, ending), { maxLength: 8 }), ends, async (parts, ends) => {
        // A CR before an empty line that ends in LF would be one CRLF.
        const lines = parts.map(([text, end], i) =>
          text === "" && end === "\n" && i > 0 ? ["x", end] : [text, end],
        );
        const bytes = Buffer.from(lines.flat().join(""));
        // Pieces shorter than a mark do not occur at the start of a file.
        const later = ends.map((end) => end + 4).filter((end) => end < bytes.length);
        expect(await linesOf(bytes, later)).toEqual(lines.map(([text]) => text));
      }),
    );
  });

  test("of UTF-16 with a mark, and of a declared encoding, are decoded", async () => {
    const utf16 = Buffer.from("\ufeffä\nб\r\n", "utf16le");
    expect(await linesOf(utf16, [5, 7])).toEqual(["ä", "б"]);
    expect(await linesOf(Buffer.from([0x80, 0x0a, 0xe9]), [], "windows-1252")).toEqual(["€", "é"]);
  });

  test("of UTF-8 win over a declared encoding by their mark", async () => {
    expect(await linesOf(Buffer.from("\ufeffé\n"), [], "windows-1252")).toEqual(["é"]);
  });

  test("that end in CR may be many in one block", async () => {
    const bytes = Buffer.from("a\r".repeat(300_000));
    expect((await linesOf(bytes)).length).toBe(300_000);
  });

  test("of wrong bytes are errors alone", async () => {
    const bytes = Buffer.concat([Buffer.from("a\n"), Buffer.of(0xff, 0x0a), Buffer.from("b")]);
    const [first, second, third] = await linesOf(bytes);
    expect([first, third]).toEqual(["a", "b"]);
    expect(second).toBeInstanceOf(DataFormatError);
    expect(String(second)).toMatch(/f:2: expected UTF-8 text, .*--encoding windows-1252/);
  });
});

test("a stream of text names the line of wrong bytes", async () => {
  const read = async () => {
    for await (const _ of decodeText(cut(Buffer.from([97, 10, 98, 10, 0xe9, 98, 10, 99]), [2]), {
      path: "f",
    }));
  };
  await expect(read()).rejects.toThrow(/^f:3: expected UTF-8 text/);
});

async function valuesOf(text: string, ends: readonly number[] = []): Promise<unknown[]> {
  const values: unknown[] = [];
  for await (const batch of jsonValues(cut(Buffer.from(text), ends), { path: "f" }))
    for (const entry of batch) values.push("record" in entry ? entry.record : entry.error.message);
  return values;
}

describe("JSON values", () => {
  const object = fc.dictionary(
    fc.string({ maxLength: 5 }).filter((key) => key !== "__proto__"),
    fc.jsonValue({ maxDepth: 2 }),
    { maxKeys: 3 },
  );

  test("of an array or in a row are the same however they are cut and indented", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(object, { maxLength: 4 }),
        ends,
        fc.boolean(),
        async (list, ends, isArray) => {
          const text = isArray
            ? JSON.stringify(list, undefined, 2)
            : list.map((value) => JSON.stringify(value, undefined, 1)).join("\n");
          const later = ends.map((end) => end + 4).filter((end) => end < Buffer.byteLength(text));
          expect(await valuesOf(text, later)).toEqual(JSON.parse(JSON.stringify(list)));
        },
      ),
    );
  });

  test("that are no objects are errors with their line, and the others are read", async () => {
    expect(await valuesOf('[\n{"a":1},\n 7,\n"x", {"b":}, {"c":2}]')).toEqual([
      { a: 1 },
      "f:3: expected one JSON object on the line, got the number 7",
      'f:4: expected one JSON object on the line, got "x"',
      expect.stringMatching(/^f:4: expected one JSON object/),
      { c: 2 },
    ]);
  });

  test("of a file that is cut short end in an error", async () => {
    await expect(valuesOf('[{"a":1},\n{"b":')).rejects.toThrow(/f:2: .*value that starts here.*cut short/);
    await expect(valuesOf('[{"a":1}')).rejects.toThrow(/f:1: .*JSON array.*cut short/);
  });
});
