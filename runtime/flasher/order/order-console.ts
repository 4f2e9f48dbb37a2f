/** One console of a live system that a server of this line booted: its programs, and what is asked of the machine. */
import { createDisks } from '../../engine/disk/disks.ts'
import { settleFirstDevices } from '../../engine/disk/udev.ts'
import { createPower } from '../live-system/power.ts'
import { createShell, type Environment } from '../../kit/host/shell.ts'
import type { LiveConsole } from '../live-system/live-console.ts'
import type { Output } from '../../kit/terminal/text/terminal-style.ts'

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

export type LiveServices = ReturnType<typeof createLiveServices>

/** A device that hangs must not keep a machine here. */
const SETTLE_SECONDS = 60

export function createLiveServices(env: Environment) {
  const shell = createShell({ env })
  return {
    /** All disks, once the kernel and udev have found what there is. */
    async listDisks() {
      // A disk that comes later would make two of the only one.
      await settleFirstDevices(shell, { seconds: SETTLE_SECONDS }).catch(() => null)
      return await createDisks({ shell }).survey()
    },
    hasCijoe: () => shell.has('cijoe'),
    reboot: () => createPower({ shell }).reboot(),
  }
}
