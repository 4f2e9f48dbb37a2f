/** `flasher verify`: compares a disk with an image. */
import { IMAGE_FORMATS } from '#appliance/disk-images.ts'
import type { Verified } from '#engine/verify/rules/disk-comparison.ts'
import { verifyDisk } from '#engine/verify/verifier.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { createProgress } from '#flasher/text/progress.ts'
import { SUCCESS } from './rules/exit-codes.ts'
import { countDifferences, renderVerified, verifiedFields } from './rules/verify-report.ts'
import type { CommandSession } from './session.ts'

/** Rejects with a Fault as `verifyDisk` does, and where the disk differs from the image. */
export async function verify(session: CommandSession): Promise<number> {
  const { given, environment, json, style, document } = session
  const progress = createProgress('text', { ...environment, style, storedBytes: () => null })
  const onProgress = style.tty ? progress.show : () => undefined
  const { signal } = environment
  const verified = await verifyDisk(environment, parseOrder(given), {
    signal,
    onProgress,
  }).finally(progress.clear)
  const known = verifiedFields(verified)
  if (!json) environment.stdout.write(renderVerified(verified))
  if (countDifferences(verified) > 0) return session.fail(describeDifference(verified), { known })
  if (json) document(known)
  return SUCCESS
}

function parseOrder({ positionals, values }: CommandSession['given']) {
  const [disk = ''] = positionals
  const { image = '', sha256 = null } = values
  const format = IMAGE_FORMATS.find((name) => name === values['format']) ?? null
  return { disk, image, format, sha256: sha256?.toLowerCase() ?? null }
}

const renderPlaces = (bytes: number) => (bytes === 1 ? '1 byte' : `${bytes} bytes`)

function describeDifference(verified: Verified): Fault {
  const { path } = verified.disk
  const first = verified.areas.find(({ firstDifference }) => firstDifference !== null)
  return new Fault(
    'verify-failed',
    `${path} differs from ${verified.image.name} in ${renderPlaces(countDifferences(verified))}, the first at ${first?.firstDifference ?? 0}`,
    {
      hint: 'A system that was started from the disk has changed it: that is no damage by itself.',
    },
  )
}
