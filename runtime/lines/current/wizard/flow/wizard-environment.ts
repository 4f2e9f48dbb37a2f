/** What a process hands to the wizard, and nothing else of the environment outside. */
import type { Environment } from '../../../../services/host/shell.ts'

export interface ProcessEnvironment {
  /** Without the program's own name. */
  readonly argv: readonly string[]
  /** `FLASHER_LIVE=1`: the machine was booted to be flashed, and may be restarted. */
  readonly env: Environment
  readonly stdin: NodeJS.ReadStream
  readonly stdout: NodeJS.WriteStream
  readonly stderr: NodeJS.WriteStream
  readonly isRoot: boolean
  /** As Node names it: `x64`, `arm64`. */
  readonly arch: string
  /** Aborted when the process is asked to end. */
  readonly signal: AbortSignal
  /** Seconds on a steady clock. */
  readonly now: () => number
}
