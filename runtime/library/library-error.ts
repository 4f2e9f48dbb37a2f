/** The error type of all library modules: a code from a closed list, and a hint. */
import { Fault, type FaultCode, type FaultOptions } from '../kit/foundation/fault.ts'

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

/** Throws a Fault as the error of a module, anything else as it is. */
export const rethrowAs =
  (Kind: new (code: FaultCode, message: string, options: FaultOptions) => LibraryError) =>
  (thrown: unknown): never => {
    if (!(thrown instanceof Fault)) throw thrown
    throw new Kind(thrown.code, thrown.message, { hint: thrown.hint, cause: thrown })
  }
