/** The disks that are offered to a person, and what they contain; loop devices where FLASHER_OFFER_LOOP names them. */
import type { SurveyedDisk } from './rules/disk.ts'
import { isOffered, parseLoops } from './rules/mount-map.ts'
import { createShell, type Environment } from '#kit/host/shell.ts'
import { fillContents } from './disk-contents.ts'
import { createDisks } from './disks.ts'
import { settleFirstDevices } from './udev.ts'

const SETTLE_SECONDS = 10

/** With `FLASHER_LIVE=1` the first list waits for drivers of disks. */
export function openOfferedDisks(env: Environment) {
  const shell = createShell({ env })
  const disks = createDisks({ shell })
  const loops = parseLoops(env['FLASHER_OFFER_LOOP'] ?? '')
  const settle = async () => {
    if (env['FLASHER_LIVE'] !== '1') return
    await settleFirstDevices(shell, { seconds: SETTLE_SECONDS }).catch(() => null)
  }
  let settling: Promise<void> | null = null
  return {
    async survey(): Promise<readonly SurveyedDisk[]> {
      await (settling ??= settle())
      const found = await disks.survey({ loops: loops !== 'none' })
      return found.filter(({ path, device }) => device.type !== 'loop' || isOffered(loops, path))
    },
    fill: (disk: SurveyedDisk): Promise<SurveyedDisk> => fillContents(shell, disk),
  }
}
