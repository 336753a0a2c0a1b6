/**
 * JSON values one after another: the elements of one array, or objects in a row, over as many lines as they take.
 * The file is never in memory as a whole. One value that cannot be parsed is an error of that value; a file that
 * ends inside a value is an error of the file.
 */
import { DataFormatError } from "../../errors.ts";
import { decodeText, type TextContext } from "./decode.ts";
import { parseRecord } from "./json-lines.ts";
import type { RecordLine } from "./json-record.ts";
import type { ByteSource } from "./open-bytes.ts";

/** The records of a source with the lines where they start, many at a time. */
export async function* jsonValues(
  bytes: ByteSource,
  context: TextContext,
): AsyncGenerator<readonly RecordLine[]> {
  const scanner = new ValueScanner();
  for await (const piece of decodeText(bytes, context)) {
    const values = scanner.scan(piece);
    if (scanner.isTooLong)
      throw new DataFormatError(
        context.path,
        scanner.openLine,
        "expected JSON values of at most 256 MiB, got a longer one",
      );
    if (values.length > 0)
      yield values.map(({ text, line }) => ({ line, ...parseRecord(text, context.path, line) }));
  }
  const last = scanner.takeLast();
  if (last !== undefined) yield [{ line: last.line, ...parseRecord(last.text, context.path, last.line) }];
  const open = scanner.openLine;
  if (open !== undefined)
    throw new DataFormatError(
      context.path,
      open,
      `expected the end of the JSON ${scanner.isInValue ? "value that starts here" : "array"}, got the end of the file; it is cut short: copy or download it again`,
    );
}

interface Value {
  readonly text: string;
  readonly line: number;
}

/** Longer values do not fit a text of Node together with their neighbours. */
const longestValue = 1 << 28;

/** Finds where values start and end; whether they are JSON is for the parser to say. */
class ValueScanner {
  #isInArray = false;
  /** Brackets that are open inside the present value. */
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  /** Text of the present value so far; a value is being read when not undefined. */
  #value: string | undefined;
  #valueLine = 1;
  #line = 1;

  /** Line of the value, or of the array, that has not ended. */
  get openLine(): number | undefined {
    if (this.#value !== undefined) return this.#valueLine;
    return this.#isInArray ? this.#line : undefined;
  }

  get isInValue(): boolean {
    return this.#value !== undefined;
  }

  get isTooLong(): boolean {
    return this.#value !== undefined && this.#value.length > longestValue;
  }

  /** A number or word that ends with the file. */
  takeLast(): Value | undefined {
    const isWhole = this.#value !== undefined && this.#depth === 0 && !this.#isInString;
    if (!isWhole) return undefined;
    const last = { text: this.#value ?? "", line: this.#valueLine };
    this.#value = undefined;
    return last;
  }

  /** The values that end in the next piece of text. */
  scan(piece: string): Value[] {
    const values: Value[] = [];
    let start = 0;
    const finish = (end: number): void => {
      values.push({ text: (this.#value ?? "") + piece.slice(start, end), line: this.#valueLine });
      this.#value = undefined;
      this.#depth = 0;
    };
    for (let i = 0; i < piece.length; i++) {
      const code = piece.charCodeAt(i);
      if (code === 10) this.#line++;
      if (this.#value === undefined) {
        if (!this.#startsValue(code)) continue;
        start = i;
        this.#value = "";
        this.#valueLine = this.#line;
      }
      if (this.#depth === 0 && !this.#isInString && isSeparator(code)) {
        finish(i);
        if (code === 93) this.#isInArray = false;
      } else if (this.#step(code)) finish(i + 1);
    }
    if (this.#value !== undefined) this.#value += piece.slice(start);
    return values;
  }

  #startsValue(code: number): boolean {
    if (code <= 32 || code === 44) return false;
    if (code === 91 && !this.#isInArray) {
      this.#isInArray = true;
      return false;
    }
    if (code === 93 && this.#isInArray) {
      this.#isInArray = false;
      return false;
    }
    return true;
  }

  /** Takes one character of a value; true when an object or array ended with it. */
  #step(code: number): boolean {
    if (this.#isInString) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (code === 92) this.#isEscaped = true;
      else if (code === 34) this.#isInString = false;
    } else if (code === 34) this.#isInString = true;
    else if (code === 123 || code === 91) this.#depth++;
    else if (code === 125 || code === 93) return --this.#depth <= 0;
    return false;
  }
}

/** What ends a number, a word or a text outside brackets: a blank, a comma or the end of the array. */
function isSeparator(code: number): boolean {
  return code <= 32 || code === 44 || code === 93;
}
