/** Says what is a bare file name: no way to another folder, no hidden file, nothing that a header could not carry. */

/** Long enough for any name that a file system takes. */
const MAX_BYTES = 255
const BARE = /^[^./\\\p{Cc}\p{Cs}][^/\\\p{Cc}\p{Cs}]*$/u

/**
 * Tells whether a name of at most 255 bytes is a bare one. A percent sign is allowed, also where it
 * could be an escape; but a name that leads elsewhere once a program on the way decodes it a second
 * time is not.
 */
export function isBareFileName(name: string): boolean {
  if (!BARE.test(name) || Buffer.byteLength(name) > MAX_BYTES) return false
  const decoded = decodeEscapes(name)
  return decoded === name || isBareFileName(decoded)
}

/** Byte by byte: what matters is ASCII, and what is no UTF-8 leads elsewhere, too. */
const decodeEscapes = (name: string): string =>
  name.replaceAll(/%([0-7][0-9a-f])/gi, (_, digits: string) =>
    String.fromCodePoint(Number.parseInt(digits, 16)),
  )
