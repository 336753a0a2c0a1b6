/** A size for people: megabytes or gigabytes of powers of ten, as hubs and disks show it. */
export function formatMegabytes(bytes: number): string {
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
}
