/** One console of a live system that a server of this line booted, and the programs that it can start. */
import type { LiveConsole } from '../live-system/live-console.ts'
import type { Output } from '../../kit/terminal/text/terminal-style.ts'
import type { LiveServices } from './live-services.ts'

interface TuiOpening {
  /** Why a person is asked; null: that was ordered. */
  readonly reason: string | null
  /** Why the server was not notified of the flash that is done. */
  readonly unsent?: string
}

export interface EarlierConsole extends LiveConsole {
  /** What a flash says goes there. */
  readonly stderr: Output
  readonly isRoot: boolean
  /** Seconds on a steady clock. */
  readonly now: () => number
  /** `flasher-tui`; returns the exit code. */
  tui(argv: readonly string[], opening: TuiOpening): Promise<number>
  /** Those of this machine when absent. */
  readonly services?: LiveServices
}
