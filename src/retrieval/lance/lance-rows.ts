/**
 * Rows of a table: `position` in the corpus, `passage` as one line of JSON (whole, with unknown keys; one column is read
 * faster than four), `terms` for the text index, `vector` where there is an encoder, and `checkpoint` in the last row of
 * each piece that was added at once: the hash of all passages up to it, by which an interrupted build goes on.
 */
import type { Passage } from "../../corpus/passage.ts";
import { passageOf } from "../../corpus/passage-record.ts";
import { RetrieverError } from "../../errors.ts";
import type { ArrowModule, ArrowPart, ArrowTable } from "./lance-module.ts";

export interface LanceRows {
  readonly first: number;
  readonly lines: readonly string[];
  readonly terms: readonly string[];
  /** (rows × dimensions) */
  readonly vectors: Float32Array | undefined;
  readonly checkpoint: string;
}

interface Column {
  readonly name: string;
  readonly type: ArrowPart;
  readonly isNullable?: boolean;
}

/** Without `dimensions`, there is no column of vectors. */
export function rowSchema(arrow: ArrowModule, dimensions: number | undefined): ArrowPart {
  return new arrow.Schema(fieldsOf(arrow, columnsOf(arrow, dimensions)));
}

function columnsOf(arrow: ArrowModule, dimensions: number | undefined): Column[] {
  const text = new arrow.Utf8();
  return [
    { name: "position", type: new arrow.Int32() },
    { name: "passage", type: text },
    { name: "terms", type: text },
    { name: "checkpoint", type: text, isNullable: true },
    ...(dimensions === undefined ? [] : [{ name: "vector", type: listType(arrow, dimensions) }]),
  ];
}

function fieldsOf(arrow: ArrowModule, columns: readonly Column[]): ArrowPart[] {
  return columns.map(({ name, type, isNullable = false }) => new arrow.Field(name, type, isNullable));
}

function listType(arrow: ArrowModule, dimensions: number): ArrowPart {
  return new arrow.FixedSizeList(dimensions, new arrow.Field("item", new arrow.Float32(), true));
}

/** The rows as an Arrow table. */
export function arrowRows(arrow: ArrowModule, rows: LanceRows): ArrowTable {
  const length = rows.lines.length;
  const dimensions = rows.vectors && rows.vectors.length / length;
  const checkpoints = rows.lines.map((_, i) => (i === length - 1 ? rows.checkpoint : null));
  const positions = Int32Array.from({ length }, (_, i) => rows.first + i);
  const children = [
    arrow.makeData({ type: new arrow.Int32(), length, data: positions }),
    ...[rows.lines, rows.terms, checkpoints].map((texts) => textData(arrow, texts)),
  ];
  if (rows.vectors && dimensions !== undefined) {
    const child = arrow.makeData({
      type: new arrow.Float32(),
      length: rows.vectors.length,
      data: rows.vectors,
    });
    children.push(arrow.makeData({ type: listType(arrow, dimensions), length, nullCount: 0, child }));
  }
  return tableOf(arrow, { columns: columnsOf(arrow, dimensions), length, children });
}

/** One row with one text. */
export function singleText(arrow: ArrowModule, name: string, text: string): ArrowTable {
  const columns = [{ name, type: new arrow.Utf8() }];
  return tableOf(arrow, { columns, length: 1, children: [textData(arrow, [text])] });
}

function tableOf(
  arrow: ArrowModule,
  { columns, ...data }: { columns: readonly Column[]; length: number; children: readonly ArrowPart[] },
): ArrowTable {
  const fields = fieldsOf(arrow, columns);
  const schema = new arrow.Schema(fields);
  const batch = new arrow.RecordBatch(schema, arrow.makeData({ type: new arrow.Struct(fields), ...data }));
  return new arrow.Table(schema, [batch]);
}

function textData(arrow: ArrowModule, texts: readonly (string | null)[]): ArrowPart {
  const valueOffsets = new Int32Array(texts.length + 1);
  const nullBitmap = new Uint8Array(Math.ceil(texts.length / 8));
  let nullCount = 0;
  const data = Buffer.allocUnsafe(texts.reduce((sum, text) => sum + Buffer.byteLength(text ?? ""), 0));
  let end = 0;
  for (const [i, text] of texts.entries()) {
    if (text === null) nullCount++;
    else {
      end += data.write(text, end);
      nullBitmap[i >> 3] = (nullBitmap[i >> 3] as number) | (1 << (i & 7));
    }
    valueOffsets[i + 1] = end;
  }
  const parts = { type: new arrow.Utf8(), length: texts.length, nullCount, valueOffsets, data };
  return arrow.makeData(nullCount > 0 ? { ...parts, nullBitmap } : parts);
}

/** The passage of a row. Throws `RetrieverError` when it is none. */
export function passageOfLine(line: unknown, table: string, position: number): Passage {
  let passage: Passage | Error;
  try {
    passage = passageOf(JSON.parse(String(line)) as Record<string, unknown>, table, position + 1);
  } catch (error) {
    passage = error as Error;
  }
  if (passage instanceof Error)
    throw new RetrieverError(
      `the table ${table} is damaged: row ${position} is no passage (${passage.message}); build it again`,
    );
  return passage;
}
