/** What the live system asks of this machine: its disks, its programs, and a restart. */
import { createDisks } from '../../engine/disk/disks.ts'
import { settleFirstDevices } from '../../engine/disk/udev.ts'
import { createPower } from '../live-system/power.ts'
import { createShell, type Environment } from '../../kit/host/shell.ts'

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
