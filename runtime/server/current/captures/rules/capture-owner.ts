/** Current line: whether the name of an image that was set to be captured is free, before its machine boots for it. */
import { isPending } from '#engine/capture/rules/order.ts'
import { refOf, type CatalogEntry } from '#engine/catalog/rules/catalog.ts'
import { fileSource } from '#engine/catalog/rules/cache-entry.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import { SAME_NAME_AS_ANOTHER } from '#server/current/machines/rules/action.ts'
import type { Machine } from '#server/current/machines/rules/machine.ts'

export type CanSeeMachine = (machine: Machine) => boolean

interface NameOwners {
  readonly images: readonly Pick<CatalogEntry, 'name'>[]
  readonly machines: readonly Machine[]
  /** Absent: all are seen. */
  readonly canSee?: CanSeeMachine | undefined
}

/**
 * Why the name is taken, in words; null: free. The name is the source that machines are bound to:
 * other content under a removed image's name would be written without a question. Unseen machines
 * are not mentioned; the cache keeps their uploads apart.
 */
export function findNameOwner(
  name: string,
  mac: Mac,
  { images, machines, canSee = () => true }: NameOwners,
): string | null {
  if (images.some((image) => image.name === name)) {
    return `There is already an image called ${name}. Choose another name.`
  }
  const ref = refOf(fileSource(name))
  const bound = machines.filter(({ bty_image_ref: image }) => ref.ok && image === ref.value)
  if (bound.length > 0 && !bound.some(canSee))
    return `${name} is not a valid name for a capture. Choose another.`
  if (bound.length > 0) {
    return `Machines are still assigned a removed image called ${name} and would be flashed with this one. Choose another name.`
  }
  const isOrdered = machines.some(
    (other) =>
      other.mac !== mac && isPending(other.capture) && other.capture.name === name && canSee(other),
  )
  return isOrdered ? SAME_NAME_AS_ANOTHER : null
}
