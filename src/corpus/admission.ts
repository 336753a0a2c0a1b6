/**
 * Which passages of a corpus are given out: ids must not repeat over all files, empty passages are left out, and equal
 * passages are counted. What is wrong stops the reading when it is strict, and is noted otherwise. Memory: see
 * `fingerprints.ts`.
 */
import { DataFormatError } from "../errors.ts";
import { type CorpusProblem, type CorpusReport, noteProblem } from "./corpus-report.ts";
import { FingerprintTable, IdTable } from "./fingerprints.ts";
import type { Passage } from "./passage.ts";

export interface AdmissionOptions {
  readonly isStrict: boolean;
  readonly dropDuplicates: boolean;
  /** Equal passages are looked for; it takes time and memory. */
  readonly countDuplicates: boolean;
  readonly report: CorpusReport;
  readonly onProblem: ((problem: CorpusProblem) => void) | undefined;
}

interface FileStart {
  readonly path: string;
  /** Position of line 0 of the file, counting the lines of all files. */
  readonly position: number;
}

/** Decides for one passage after the other. */
export class Admission {
  readonly #options: AdmissionOptions;
  readonly #ids = new IdTable();
  readonly #passages = new FingerprintTable();
  readonly #files: FileStart[] = [];
  #path = "";
  #start = 0;
  #last = 0;

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  /** What follows comes from this file. */
  startFile(path: string): void {
    this.#start = this.#last + 1;
    this.#last = this.#start;
    this.#path = path;
    this.#files.push({ path, position: this.#start });
  }

  /** Whether a passage is given out; its line counts from 1 and is undefined for documents. */
  admits(passage: Passage, line: number | undefined): boolean {
    const position = this.#start + (line ?? 0);
    if (position > this.#last) this.#last = position;
    const earlier = this.#ids.add(passage.id, position);
    if (earlier !== undefined) {
      this.refuse("duplicateId", this.#repeatedId(passage.id, line, earlier));
      return false;
    }
    if (this.#options.countDuplicates && !this.#admitsText(passage, { line, position })) return false;
    this.#options.report.passages++;
    return true;
  }

  #admitsText(
    { id, title, text }: Passage,
    { line, position }: { readonly line: number | undefined; readonly position: number },
  ): boolean {
    const earlier = this.#passages.add(title, position, text);
    if (earlier === undefined) return true;
    const { dropDuplicates } = this.#options;
    const fate = dropDuplicates ? "left out" : "kept";
    const message = `the passage ${JSON.stringify(id)} has the title and text of ${this.#placeOf(earlier)}; it is ${fate}`;
    this.#note({ kind: "duplicatePassage", error: new DataFormatError(this.#path, line, message) });
    return !dropDuplicates;
  }

  /** Notes what is wrong, or throws it when reading is strict. */
  refuse(kind: CorpusProblem["kind"], error: DataFormatError): void {
    if (this.#options.isStrict) throw error;
    this.#note({ kind, error });
  }

  #note(problem: CorpusProblem): void {
    noteProblem(this.#options.report, problem);
    this.#options.onProblem?.(problem);
  }

  #repeatedId(id: string, line: number | undefined, earlier: number): DataFormatError {
    const quoted = JSON.stringify(id);
    const isHere = earlier >= this.#start;
    const message = isHere
      ? `expected ids without repeats, got ${quoted} of ${this.#placeOf(earlier)} again`
      : `expected ids that are unique over all files, got ${quoted}, which ${this.#placeOf(earlier)} has too`;
    return new DataFormatError(this.#path, line, message);
  }

  /** `line 7` of the present file, `file` or `file:7` of an earlier one. */
  #placeOf(position: number): string {
    const file = this.#files.findLast((start) => start.position <= position) as FileStart;
    const line = position - file.position;
    if (file.position === this.#start) return line === 0 ? "an earlier passage of it" : `line ${line}`;
    return line === 0 ? file.path : `${file.path}:${line}`;
  }
}
