/** The services that choosing and flashing take, put together; loaded once the first screen is there. */
import {
  planFlash,
  renderRefusal,
  type FlashOptions,
  type FlashPlan,
} from '../../../../core/flash/flash.ts'
import { isSameDisk, type SurveyedDisk } from '../../../../core/disk/disk.ts'
import { accept, refuse, type Result } from '../../../../core/foundation/result.ts'
import { createDecoders } from '../../../../services/image/decoders.ts'
import { fillContents } from '../../../../services/disk/disk-contents.ts'
import { createDisks, type Disks } from '../../../../services/disk/disks.ts'
import {
  createFlashChecks,
  type CheckedImage,
  type FlashChecks,
} from '../../../../services/flash/flash-checks.ts'
import { createImages } from '../../../../services/image/images.ts'
import { createPartitionTable } from '../../../../services/disk/partition-table.ts'
import { createShell, type Environment } from '../../../../services/host/shell.ts'
import { createSources, type Sources } from '../../../../services/image/sources.ts'
import { createWriter, type Writer } from '../../../../services/flash/writer.ts'
import type { FlashOrder, ImageChoice } from './start.ts'

export interface FlashServices {
  readonly disks: Disks
  /** What lies on a disk, read from it where nothing else tells. */
  readonly fillContents: (disk: SurveyedDisk) => Promise<SurveyedDisk>
  readonly sources: Sources
  readonly checks: FlashChecks
  readonly writer: Writer
}

export function createFlashServices(env: Environment): FlashServices {
  const shell = createShell({ env })
  const disks = createDisks({ shell })
  const decoders = createDecoders({ shell })
  return {
    disks,
    fillContents: (disk) => fillContents(shell, disk),
    sources: createSources({ env }),
    checks: createFlashChecks({ images: createImages({ shell }), decoders, disks }),
    writer: createWriter({ shell, decoders, disks, table: createPartitionTable({ shell }) }),
  }
}

/** What the image is; opened for this alone. */
export async function lookAtImage(
  { sources, checks }: FlashServices,
  choice: ImageChoice,
  signal: AbortSignal,
): Promise<CheckedImage> {
  await using source = await sources.open(choice.location, { signal })
  return await checks.checkImage(source, choice, signal)
}

/** Everything was read back; the target is a whole disk; the image stays as it is, byte for byte. */
const OPTIONS = { verify: 'data', allowPartition: false, fixGpt: false } as const

/** Image and disk as they are now, and what follows: a plan, or every reason against it. */
export async function planOrder(
  parts: FlashServices,
  order: FlashOrder,
  checked: CheckedImage,
  signal: AbortSignal,
): Promise<Result<FlashPlan, readonly string[]>> {
  const { image, imageProblem, sha256 } = checked
  const target = await parts.checks.checkTarget(order.disk, image, signal)
  const now = target.device?.identity
  const isOther = order.identity !== null && now !== undefined && !isSameDisk(order.identity, now)
  const options: FlashOptions = { ...OPTIONS, sha256 }
  const planned = planFlash(image, target, options)
  const reasons = [
    ...(imageProblem === null ? [] : [imageProblem]),
    ...(isOther ? [`${order.disk} is another disk now than the one that was chosen`] : []),
    ...(planned.ok ? [] : planned.refusal.map((refusal) => renderRefusal(refusal))),
  ]
  return planned.ok && reasons.length === 0 ? accept(planned.value) : refuse(reasons)
}
