/**
 * The byte alphabet of byte-level byte-pair encoding (Radford et al., GPT-2, 2019): every byte has one printable
 * character, so that pieces of bytes can be written as text in `tokenizer.json`. Printable Latin-1 characters
 * stand for themselves, the other 68 bytes for the characters from U+0100 on.
 */

const printable = (byte: number): boolean =>
  (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);

/** The character of each byte, (256). */
export const byteCharacters: readonly string[] = (() => {
  let next = 0x100;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(printable(byte) ? byte : next++));
})();

const byteOfCharacter: ReadonlyMap<string, number> = new Map(byteCharacters.map((c, byte) => [c, byte]));

/** The bytes of a piece written in the alphabet; undefined when a character is not of the alphabet. */
export function bytesOfPiece(piece: string): Uint8Array | undefined {
  const bytes = new Uint8Array(piece.length);
  for (let i = 0; i < piece.length; i++) {
    const byte = byteOfCharacter.get(piece[i] as string);
    if (byte === undefined) return undefined;
    bytes[i] = byte;
  }
  return bytes;
}
