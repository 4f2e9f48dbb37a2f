/** The error type of all library modules: a code from a closed list, and a hint. */
import { Fault, type FaultCode, type FaultOptions } from '#kit/foundation/fault.ts'

/** What every function of the library throws; each module has its own kind. */
export class LibraryError extends Error {
  /** What went wrong, from a closed list, so that programs can act on it. */
  readonly code: FaultCode
  /** How to fix it, as one sentence; undefined where that is not known. */
  readonly hint: string | undefined

  constructor(code: FaultCode, message: string, options: FaultOptions = {}) {
    super(message, { cause: options.cause })
    this.code = code
    this.hint = options.hint
  }
}

/** Makes a function that throws a Fault as the error of a module, and anything else as it is. */
export const rethrowAs =
  (Kind: new (code: FaultCode, message: string, options: FaultOptions) => LibraryError) =>
  (thrown: unknown): never => {
    if (!(thrown instanceof Fault)) throw thrown
    throw new Kind(thrown.code, thrown.message, { hint: thrown.hint, cause: thrown })
  }
