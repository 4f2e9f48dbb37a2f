/** The one error class: what went wrong (a code from a closed list), in words, and the way out. */

/** Every surface maps these to its own terms (exit codes, HTTP statuses) with a checked table. */
export const FAULT_CODES = [
  'misuse', // arguments that cannot be meant
  'input-missing', // a named file or URL is not there
  'input-invalid', // a file is there, but is not what it must be
  'plan-refused', // validation said no; nothing was written
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
  'forbidden', // known who asks, and it is not theirs to do
  'conflict', // it is in use, or being done already
  'stale', // what was to be changed is no longer as the caller saw it
  'too-large',
  'busy', // too much at once; later it will do
  'storage-full',
  'upstream-failed', // another server did not answer, or not as it must
] as const

export type FaultCode = (typeof FAULT_CODES)[number]

export interface FaultOptions {
  /** The way out, as one sentence for the person who reads it. */
  readonly hint?: string | undefined
  readonly cause?: unknown
}

export class Fault extends Error {
  override readonly name = 'Fault'
  readonly code: FaultCode
  readonly hint: string | undefined

  constructor(code: FaultCode, message: string, options: FaultOptions = {}) {
    super(message, { cause: options.cause })
    this.code = code
    this.hint = options.hint
  }
}

/** What to say of anything that was thrown. */
export function renderError(thrown: unknown): string {
  if (thrown instanceof Error) return thrown.message || thrown.name
  return String(thrown)
}
