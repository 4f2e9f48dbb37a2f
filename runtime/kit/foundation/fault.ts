/** The one error class: a code from a closed list, a message, and a hint. */

import { describeSystemError } from './system-text.ts'

/** Every surface maps these to its own terms (exit codes, HTTP statuses) with a checked table. */
export const FAULT_CODES = [
  'misuse', // arguments that make no sense
  'input-missing', // a named file or URL is not there
  'input-invalid', // a file is there, but is not what it must be
  'plan-refused', // validation refused it; nothing was written
  'source-broken', // reading the image failed, or it changed while it was read
  'image-broken', // the image's bytes are damaged, cut off or followed by garbage
  'digest-mismatch', // the image is not the one that was asked for
  'write-failed', // the disk did not take the bytes
  'verify-failed', // the disk does not hold what was written
  'target-raced', // the disk changed between the check and the first byte
  'provision-failed', // the step after the write failed
  'root-required',
  'tool-missing',
  'tool-failed', // an external tool ended with an error
  'cancelled',
  'not-found', // what was asked for is not here
  'login-required',
  'forbidden', // logged in, but not allowed
  'conflict', // it is in use, or being done already
  'stale', // it has changed since the caller read it
  'too-large',
  'busy', // too much at once; try again later
  'no-leader', // no server may decide at the moment; try again
  'storage-full',
  'upstream-failed', // another server did not answer, or not as expected
] as const

export type FaultCode = (typeof FAULT_CODES)[number]

export interface FaultOptions {
  /** How to fix it, as one sentence for the person who reads it. */
  readonly hint?: string | undefined
  readonly cause?: unknown
  /** Where a name stands for several things: the names of each. */
  readonly alternatives?: readonly string[]
}

export class Fault extends Error {
  override readonly name = 'Fault'
  readonly code: FaultCode
  readonly hint: string | undefined
  readonly alternatives: readonly string[]

  constructor(code: FaultCode, message: string, options: FaultOptions = {}) {
    super(message, { cause: options.cause })
    this.code = code
    this.hint = options.hint
    this.alternatives = options.alternatives ?? []
  }
}

/** Errors of the system become a clause for people. */
export function renderError(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown)
  const known = thrown instanceof Fault ? null : describeSystemError(thrown)
  return known?.message ?? (thrown.message || thrown.name)
}

/** Returns how to fix what was thrown, as one sentence; undefined where that is not known. */
export const hintOf = (thrown: unknown): string | undefined =>
  thrown instanceof Fault
    ? (thrown.hint ?? describeSystemError(thrown.cause)?.hint)
    : describeSystemError(thrown)?.hint
