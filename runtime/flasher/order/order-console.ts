/** One console of a live system that a server of this line booted: its programs, and what is asked of the machine. */
import { createDisks } from '#engine/disk/disks.ts'
import { settleFirstDevices } from '#engine/disk/udev.ts'
import { createPower } from '#flasher/live-system/power.ts'
import { createShell, type Environment } from '#kit/host/shell.ts'
import type { LiveConsole } from '#flasher/live-system/live-console.ts'
import type { Output } from '#kit/terminal/text/terminal-style.ts'

interface TuiOpening {
  /** Why a person is asked; null: that was ordered. */
  readonly reason: string | null
  /** Why the server was not notified of the finished flash. */
  readonly unsent?: string
}

export interface EarlierConsole extends LiveConsole {
  readonly stderr: Output
  readonly isRoot: boolean
  /** Seconds on a steady clock. */
  readonly now: () => number
  /** Returns the exit code of `flasher-tui`. */
  tui(argv: readonly string[], opening: TuiOpening): Promise<number>
  /** Absent: those of this machine. */
  readonly services?: LiveServices
}

export type LiveServices = ReturnType<typeof createLiveServices>

/** A device that hangs must not keep a machine here. */
const SETTLE_SECONDS = 60

export function createLiveServices(env: Environment) {
  const shell = createShell({ env })
  return {
    async listDisks() {
      // The only disk so far may not be the only one.
      await settleFirstDevices(shell, { seconds: SETTLE_SECONDS }).catch(() => null)
      return await createDisks({ shell }).survey()
    },
    hasCijoe: () => shell.has('cijoe'),
    reboot: () => createPower({ shell }).reboot(),
  }
}
