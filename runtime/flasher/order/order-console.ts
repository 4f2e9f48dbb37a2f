/** One console of a live system that a server of this line booted, and the programs that it can start. */
import type { FlashEvent, FlashPlan } from '../../engine/flash/rules/flash.ts'
import type { LiveConsole } from '../live-system/live-console.ts'
import type { Output } from '../../kit/terminal/text/terminal-style.ts'
import type { LiveServices } from './live-services.ts'

/** How `flasher` is started here: `stdout` takes its document, and each event is followed. */
interface FlashProcess {
  readonly stdout: Output
  onEvent(event: FlashEvent, plan: FlashPlan): void
}

interface TuiOpening {
  /** Why a person is asked; null: that was ordered. */
  readonly reason: string | null
  /** Why the server was not notified of the flash that is done. */
  readonly unsent?: string
}

export interface EarlierConsole extends LiveConsole {
  /** The subcommands of `flasher`; returns the exit code. */
  flasher(argv: readonly string[], process: FlashProcess): Promise<number>
  /** `flasher-tui`; returns the exit code. */
  tui(argv: readonly string[], opening: TuiOpening): Promise<number>
  /** Those of this machine when absent. */
  readonly services?: LiveServices
}
