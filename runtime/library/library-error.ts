/** What the errors of all modules have: a code from a closed list, and a hint. */
import type { FaultCode, FaultOptions } from '../core/foundation/fault.ts'

export class LibraryError extends Error {
  readonly code: FaultCode
  /** How to fix it, where that is known. */
  readonly hint: string | undefined

  constructor(code: FaultCode, message: string, options: FaultOptions = {}) {
    super(message, { cause: options.cause })
    this.code = code
    this.hint = options.hint
  }
}
