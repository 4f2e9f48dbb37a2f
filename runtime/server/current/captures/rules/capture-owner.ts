/** Current line: whether the name of an image that is to be captured is free, before its machine boots for it. */
import { isPending } from '../../../../engine/capture/rules/order.ts'
import { refOf, type CatalogEntry } from '../../../../engine/catalog/rules/catalog.ts'
import { fileSource } from '../../../../engine/catalog/rules/dropped-file.ts'
import type { Mac } from '../../../../kit/net/rules/mac.ts'
import { SAME_NAME_AS_ANOTHER } from '../../rules/action.ts'
import type { Machine } from '../../rules/machine.ts'

interface NameOwners {
  /** What the catalog lists. */
  readonly images: readonly Pick<CatalogEntry, 'name'>[]
  readonly machines: readonly Machine[]
}

/**
 * Says in words why a captured image of the machine `mac` cannot be called `name`; null: it can. A
 * machine is bound to the source of its image, which for a captured one is its name: another content
 * under the name of an image that was removed would be written without a question.
 */
export function findNameOwner(
  name: string,
  mac: Mac,
  { images, machines }: NameOwners,
): string | null {
  if (images.some((image) => image.name === name)) {
    return `There is an image called ${name} already, which a capture never replaces: choose another name.`
  }
  const ref = refOf(fileSource(name))
  if (ref.ok && machines.some(({ bty_image_ref: bound }) => bound === ref.value)) {
    return `Machines are assigned an image called ${name}, which was removed: they would be flashed with what is captured. Choose another name.`
  }
  const isOrdered = machines.some(
    ({ mac: other, capture }) => other !== mac && isPending(capture) && capture.name === name,
  )
  return isOrdered ? SAME_NAME_AS_ANOTHER : null
}
