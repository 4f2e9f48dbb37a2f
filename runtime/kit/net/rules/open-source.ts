/** Judges whether an image can be read in parts by everybody who has its address. */
import { describeProbe, type Headers } from './http-range.ts'

interface FileToOpen {
  /** Null: it is not known. */
  readonly sizeBytes: number | null
}

const WORDS: Readonly<Record<number, string>> = {
  401: 'it wants a login',
  403: 'it wants a login',
  404: 'it does not have these bytes',
  410: 'it does not have these bytes any more',
  429: 'it limits how often it is asked',
}

/**
 * Says in a clause what speaks against it, by the answer to a GET of byte 0; null: nothing does.
 */
export function findObstacle(
  status: number,
  headers: Headers,
  { sizeBytes }: FileToOpen,
): string | null {
  if (status !== 200 && status !== 206) return WORDS[status] ?? `it answers HTTP ${status}`
  const found = describeProbe(status, headers)
  if (found?.ranges !== true) return 'it sends no parts of a file'
  return findOtherSize(found.sizeBytes, sizeBytes)
}

/** Says that a file has another size than the one that was ordered; null: it may be that one. */
export const findOtherSize = (found: number | null, wanted: number | null): string | null =>
  wanted === null || found === wanted ? null : `it has ${found} bytes there, not ${wanted}`
