/**
 * WebAssembly put together from its instructions, as far as it is needed here: the binary format of WebAssembly 2.0 with
 * vectors of two doubles or four singles, and memory that threads may share (https://webassembly.github.io/spec/core/binary/). No compiler is needed.
 */

/** Bytes, nested as they come. */
export type Code = readonly (number | Code)[];

export const I32 = 0x7f;
export const F32 = 0x7d;
export const F64 = 0x7c;
export const V128 = 0x7b;

/** Unsigned LEB128. */
function unsigned(value: number): Code {
  return value < 128 ? [value] : [(value % 128) | 128, unsigned(Math.floor(value / 128))];
}

/** Signed LEB128. */
function signed(value: number): Code {
  return value >= -64 && value < 64 ? [value & 127] : [(value & 127) | 128, signed(value >> 7)];
}

export const get = (local: number): Code => [0x20, local];
export const set = (local: number): Code => [0x21, local];
/** Sets and leaves the value. */
export const tee = (local: number): Code => [0x22, local];
export const constant = (value: number): Code => [0x41, signed(value)];
export const add = 0x6a;
export const subtract = 0x6b;
export const shiftLeft = 0x74;
export const shiftRight = 0x76;
export const isBelow = 0x49;
export const isZero = 0x45;

const at = (alignment: number, offset: number): Code => [alignment, unsigned(offset)];
/** From an address and an offset; the address is on the stack. */
export const loadInteger = (offset = 0): Code => [0x28, at(2, offset)];
export const loadSingle = (offset = 0): Code => [0x2a, at(2, offset)];
export const loadDouble = (offset = 0): Code => [0x2b, at(3, offset)];
export const storeInteger = (offset = 0): Code => [0x36, at(2, offset)];
export const storeDouble = (offset = 0): Code => [0x39, at(3, offset)];
export const toDouble = 0xbb;
export const addDoubles = 0xa0;
export const multiplyDoubles = 0xa2;
export const isDoubleAtLeast = 0x66;

const vector = (operation: number): Code => [0xfd, unsigned(operation)];
/** Any vector, of singles too. */
export const loadPair = (offset = 0): Code => [vector(0x00), at(3, offset)];
export const storePair = (offset = 0): Code => [vector(0x0b), at(3, offset)];
export const zeroPair: Code = [vector(0x0c), new Array<number>(16).fill(0)];
/** A pair of the same double twice. */
export const pairOf = vector(0x14);
export const isPairAtLeast = vector(0x4c);
export const isAny = vector(0x53);
export const greaterPair = vector(0xf7);
export const addPair = vector(0xf0);
export const multiplyPair = vector(0xf2);
/** A double of a pair, by its place. */
export const ofPair = (place: 0 | 1): Code => [vector(0x21), place];
/** Two singles, from an address and an offset, and zeros; of four singles the first two as doubles. */
export const loadHalf = (offset = 0): Code => [vector(0x5d), at(3, offset)];
export const widenHalf = vector(0x5f);

/** All of the same single; arithmetic on four singles. */
export const fourOf = vector(0x13);
export const rootFour = vector(0xe3);
export const addFour = vector(0xe4);
export const subtractFour = vector(0xe5);
export const multiplyFour = vector(0xe6);
export const divideFour = vector(0xe7);
/** The right one where it is greater, else the left one: of a number and no number, the number if it is left. */
export const greaterFour = vector(0xeb);
export const areFourEqual = vector(0x41);

const end = 0x0b;
const noResult = 0x40;
/** Runs `body`, and again while what it leaves on the stack is true. */
export const repeat = (...body: Code): Code => [0x03, noResult, body, 0x0d, 0, end];
/** Runs `body` if what is on the stack is true. */
export const when = (...body: Code): Code => [0x04, noResult, body, end];

export interface WasmFunction {
  readonly name: string;
  readonly parameters: Code;
  readonly results: Code;
  /** How many locals of which type follow the parameters; all 0 at first. */
  readonly locals: readonly (readonly [count: number, type: number])[];
  readonly code: Code;
}

const list = (parts: readonly Code[]): Code => [unsigned(parts.length), parts];
const sized = (code: Code): Code => [unsigned(flat(code).length), code];
const text = (value: string): Code => sized([...Buffer.from(value)]);
const section = (id: number, content: Code): Code => [id, sized(content)];
const flat = (code: Code): number[] =>
  code.flatMap((part) => (typeof part === "number" ? [part] : flat(part)));

/** 2^16 pages of 64 KiB. */
export const MOST_PAGES = 65_536;

/**
 * A module that exports `functions` and works on the memory that it imports as `env.memory`: one that threads share, or one
 * that is not shared, into and out of which JavaScript copies faster. Either has a maximum.
 */
export function moduleOf(
  functions: readonly WasmFunction[],
  memory: "shared" | "unshared" = "shared",
): WebAssembly.Module {
  const limits = memory === "shared" ? 3 : 1;
  const types = functions.map(({ parameters, results }) => [
    0x60,
    list(each(parameters)),
    list(each(results)),
  ]);
  const bodies = functions.map(({ locals, code }) => sized([list(locals), code, end]));
  const code: Code = [
    [0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    section(1, list(types)),
    section(2, list([[text("env"), text("memory"), 2, limits, unsigned(0), unsigned(MOST_PAGES)]])),
    section(3, list(functions.map((_, i) => unsigned(i)))),
    section(7, list(functions.map(({ name }, i) => [text(name), 0, unsigned(i)]))),
    section(10, list(bodies)),
  ];
  return new WebAssembly.Module(Uint8Array.from(flat(code)));
}

const each = (code: Code): Code[] => flat(code).map((byte) => [byte]);
