/** Current line: what each fault means as a process exit. */
import type { Entry } from '../../../core/command.ts'
import type { FaultCode } from '../../../core/fault.ts'

export const SUCCESS = 0
/** Also what any surprise without a code of its own ends with. */
export const FAILED = 1
/** What was asked for, or the configuration, cannot be meant. */
export const MISUSED = 2

const MEANT_OTHERWISE: ReadonlySet<FaultCode> = new Set(['misuse', 'input-invalid'])

export const exitCodeOf = (code: FaultCode): number =>
  MEANT_OTHERWISE.has(code) ? MISUSED : FAILED

export const EXIT_CODES: readonly Entry[] = [
  ['0', 'success; the server was asked to end, and did'],
  ['1', 'failure: a file, the network or the state could not be used'],
  ['2', 'misuse: wrong arguments, or a configuration that says what cannot be'],
]
