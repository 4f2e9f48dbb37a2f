/** Current line: whether the name of an image that is to be captured is free, before its machine boots for it. */
import { isPending } from '../../../../engine/capture/rules/order.ts'
import { refOf, type CatalogEntry } from '../../../../engine/catalog/rules/catalog.ts'
import { fileSource } from '../../../../engine/catalog/rules/dropped-file.ts'
import type { Mac } from '../../../../kit/net/rules/mac.ts'
import { SAME_NAME_AS_ANOTHER } from '../../rules/action.ts'
import type { Machine } from '../../rules/machine.ts'

/** Whether who orders a capture sees a machine. */
export type SeesMachine = (machine: Machine) => boolean

interface NameOwners {
  /** What the catalog lists. */
  readonly images: readonly Pick<CatalogEntry, 'name'>[]
  readonly machines: readonly Machine[]
  /** Absent: all are seen. */
  readonly sees?: SeesMachine | undefined
}

/**
 * Says in words why a captured image of the machine `mac` cannot be called `name`; null: it can. A
 * machine is bound to the source of its image, which for a captured one is its name: another content
 * under the name of an image that was removed would be written without a question. Nothing is said of
 * machines that are not seen: what two of them upload under one name the cache tells apart.
 */
export function findNameOwner(
  name: string,
  mac: Mac,
  { images, machines, sees = () => true }: NameOwners,
): string | null {
  if (images.some((image) => image.name === name)) {
    return `There is an image called ${name} already, which a capture never replaces: choose another name.`
  }
  const ref = refOf(fileSource(name))
  const bound = machines.filter(({ bty_image_ref: image }) => ref.ok && image === ref.value)
  if (bound.length > 0 && !bound.some(sees))
    return `${name} is no name for a capture: choose another.`
  if (bound.length > 0) {
    return `Machines are assigned an image called ${name}, which was removed: they would be flashed with what is captured. Choose another name.`
  }
  const isOrdered = machines.some(
    (other) =>
      other.mac !== mac && isPending(other.capture) && other.capture.name === name && sees(other),
  )
  return isOrdered ? SAME_NAME_AS_ANOTHER : null
}
