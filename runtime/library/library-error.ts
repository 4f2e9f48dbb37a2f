/** What the errors of all modules have: a code from a closed list, and the way out. */
import type { FaultCode, FaultOptions } from '../core/foundation/fault.ts'

export class LibraryError extends Error {
  readonly code: FaultCode
  /** The way out, where there is one to tell. */
  readonly hint: string | undefined

  constructor(code: FaultCode, message: string, options: FaultOptions = {}) {
    super(message, { cause: options.cause })
    this.code = code
    this.hint = options.hint
  }
}
