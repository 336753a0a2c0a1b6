/** How a corpus is read: the options of the command line and of recipes. Chunking has a schema of its own. */
import { z } from "zod";
import { chunkOptionsSchema } from "./chunk.ts";

export const corpusFormats = [
  "jsonl",
  "json",
  "csv",
  "tsv",
  "parquet",
  "wikipedia",
  "markdown",
  "html",
  "text",
  "pdf",
  "docx",
] as const;
export type CorpusFormat = (typeof corpusFormats)[number];

export const corpusOptionsSchema = z.strictObject({
  format: z
    .enum(["auto", ...corpusFormats])
    .default("auto")
    .describe(
      "What the files are; auto tells it by name and content. In a folder, only files of the format are read.",
    ),
  encoding: z
    .string()
    .min(1)
    .optional()
    .describe("Encoding of texts, such as windows-1252; absent: UTF-8. A byte order mark wins."),
  strict: z
    .boolean()
    .default(false)
    .describe(
      "Stop at the first bad line, repeated id or empty passage; otherwise they are skipped, counted and shown.",
    ),
  dropDuplicates: z
    .boolean()
    .default(false)
    .describe("Leave out passages whose title and text came before; otherwise they are only counted."),
  columns: z
    .strictObject({
      id: z.string().min(1).optional().describe("Key or column of the id; absent: the usual names."),
      title: z.string().min(1).optional().describe("Key or column of the title; absent: title."),
      text: z.string().min(1).optional().describe("Key or column of the text; absent: the usual names."),
    })
    .optional()
    .describe("Names of the keys or columns, where they are unusual."),
  chunk: chunkOptionsSchema
    .optional()
    .describe(
      "How texts are cut into passages; absent: records stay whole, documents are cut to 100 words at ends of sentences, Wikipedia dumps to 100 words.",
    ),
});
export type CorpusOptions = z.input<typeof corpusOptionsSchema>;
