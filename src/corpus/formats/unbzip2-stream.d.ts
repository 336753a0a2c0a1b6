/** The part of the package that is used; it has no types of its own. */
declare module "unbzip2-stream" {
  /** A stream of Node's first kind: `write` emits what it unpacked before it returns. */
  interface Unbzip2Stream {
    on(event: "data", listener: (piece: Uint8Array) => void): void;
    on(event: "error", listener: (error: Error) => void): void;
    write(piece: Uint8Array): void;
    end(): void;
  }
  export default function unbzip2Stream(): Unbzip2Stream;
}
