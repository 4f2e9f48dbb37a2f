/** Maps faults to exit codes for the servers: `flasher-web` and `flasher-cache`. */
import type { Entry } from './command.ts'
import type { FaultCode } from '#kit/foundation/fault.ts'

export const SUCCESS = 0
/** Also what any surprise without a code of its own ends with. */
export const FAILED = 1
/** The arguments or the configuration are invalid. */
export const MISUSED = 2

const MISUSES: ReadonlySet<FaultCode> = new Set(['misuse', 'input-invalid'])

export const exitCodeOf = (code: FaultCode): number => (MISUSES.has(code) ? MISUSED : FAILED)

/** `what` is the program in a word. */
export const listExitCodes = (what: string): readonly Entry[] => [
  ['0', `success; the ${what} was asked to stop and did`],
  ['1', `failure: a file, the network or the ${what}'s data could not be used`],
  ['2', 'misuse: wrong arguments or an invalid configuration'],
]
