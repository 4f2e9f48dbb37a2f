/** Reads the code of a system error from what Node throws: `ENOENT`, `EBUSY`. */
import { Fault } from './fault.ts'

/** Null: a Fault, whose code is ours, or no error of the system. */
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

/** For `catch`: a value in place of what is missing; any other error goes on. */
export const unlessMissing =
  <T>(otherwise: T) =>
  (thrown: unknown): T => {
    if (isMissing(thrown)) return otherwise
    throw thrown
  }

/** The file system, or its user's share of it, has no space left, or the file would be too large for it. */
export const isFull = isOneOf(['ENOSPC', 'EDQUOT', 'EFBIG'])
