/** Reads the code of a system error from what Node throws: `ENOENT`, `EBUSY`. */
import { Fault } from './fault.ts'

/**
 * Returns the code of an error of the system; null for any other error, and for a Fault, whose code
 * is ours.
 */
export const systemCodeOf = (thrown: unknown): string | null =>
  thrown instanceof Error &&
  !(thrown instanceof Fault) &&
  'code' in thrown &&
  typeof thrown.code === 'string'
    ? thrown.code
    : null

const isOneOf = (codes: readonly string[]) => (thrown: unknown) =>
  codes.includes(systemCodeOf(thrown) ?? '')

/** Nothing has this name, or what stands before it in the path is not a folder. */
export const isMissing = isOneOf(['ENOENT', 'ENOTDIR'])

/** For `catch`: the value where nothing has this name; anything else is thrown again. */
export const ifMissing =
  <Value>(value: Value) =>
  (thrown: unknown): Value => {
    if (isMissing(thrown)) return value
    throw thrown
  }

/** The file system, or its user's share of it, has no space left, or the file would be too large for it. */
export const isFull = isOneOf(['ENOSPC', 'EDQUOT', 'EFBIG'])
