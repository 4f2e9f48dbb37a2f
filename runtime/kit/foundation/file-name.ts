/** Says what is a bare file name: no way to another folder, no hidden file, nothing that a header could not carry. */

/** Long enough for any name that a file system takes. */
const MAX_BYTES = 255
/** A percent sign that two hexadecimal digits follow could be an escape of something else. */
const BARE = /^(?!\.)(?:[^/\\%\p{Cc}\p{Cs}]|%(?![0-9a-f]{2}))+$/iu

export const isBareFileName = (name: string): boolean =>
  BARE.test(name) && Buffer.byteLength(name) <= MAX_BYTES
