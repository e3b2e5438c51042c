// Blobs: keys and cells as the tables of a home have them.

/** The bytes of a key, a slot or a root in hex. */
export function keyBlob(key: string): Buffer {
  return Buffer.from(key, "hex");
}

export function hexOf(blob: unknown): string {
  const { buffer, byteOffset, byteLength } = blob as Uint8Array;
  return Buffer.from(buffer, byteOffset, byteLength).toString("hex");
}

/** `a:<key>` and `s:<slot>`: the letter, then the bytes. */
export function cellBlob(cell: string): Buffer {
  const blob = Buffer.allocUnsafe(33);
  blob[0] = cell.charCodeAt(0);
  blob.write(cell.slice(2), 1, "hex");
  return blob;
}

export function cellText(blob: unknown): string {
  const bytes = blob as Uint8Array;
  return `${String.fromCharCode(bytes[0]!)}:${hexOf(bytes.subarray(1))}`;
}

const KEY = /^[0-9a-f]{64}$/;

export function isKey(text: string): boolean {
  return KEY.test(text);
}
