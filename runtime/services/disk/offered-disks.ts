/** The disks that are offered to a person, and what they contain; loop devices where FLASHER_OFFER_LOOP names them. */
import type { SurveyedDisk } from '../../core/disk/disk.ts'
import { isOffered, parseLoops } from '../../core/disk/offered-loops.ts'
import { createShell, type Environment } from '../host/shell.ts'
import { fillContents } from './disk-contents.ts'
import { createDisks } from './disks.ts'

export function openOfferedDisks(env: Environment) {
  const shell = createShell({ env })
  const disks = createDisks({ shell })
  const loops = parseLoops(env['FLASHER_OFFER_LOOP'] ?? '')
  return {
    /** With what uses them. */
    async survey(): Promise<readonly SurveyedDisk[]> {
      const found = await disks.survey({ loops: loops !== 'none' })
      return found.filter(({ path, device }) => device.type !== 'loop' || isOffered(loops, path))
    },
    /** With what lies on its partitions where the survey did not say. */
    fill: (disk: SurveyedDisk): Promise<SurveyedDisk> => fillContents(shell, disk),
  }
}
