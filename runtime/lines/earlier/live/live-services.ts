/** What the live system asks of this machine: its disks, its programs, and a restart. */
import type { SurveyedDisk } from '../../../core/disk/disk.ts'
import type { Result } from '../../../core/foundation/result.ts'
import { createDisks } from '../../../services/disk/disks.ts'
import { createPower } from '../../../services/host/power.ts'
import { createShell, type Environment } from '../../../services/host/shell.ts'

export interface LiveServices {
  /** All disks, once the kernel and udev have found what there is. */
  listDisks(): Promise<readonly SurveyedDisk[]>
  hasCijoe(): Promise<boolean>
  reboot(): Promise<Result<null, string>>
}

/** A device that hangs must not keep a machine here. */
const SETTLE_MS = 60_000

export function createLiveServices(env: Environment): LiveServices {
  const shell = createShell({ env })
  return {
    async listDisks() {
      // A disk that comes later would make two of the only one.
      await shell.run(['udevadm', 'settle'], { timeout: SETTLE_MS }).catch(() => null)
      return await createDisks({ shell }).survey()
    },
    hasCijoe: () => shell.has('cijoe'),
    reboot: () => createPower({ shell }).reboot(),
  }
}
