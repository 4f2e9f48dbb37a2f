/** Plans flashes from the first source of several that is there and holds the image that was asked for. */
import { Fault } from '#kit/foundation/fault.ts'
import { createSourceList } from '#engine/image/sources/source-list.ts'
import { readFrameMap } from '#engine/image/frame-maps.ts'
import type { Source } from '#engine/image/sources/source.ts'
import type { Sources } from '#engine/image/sources/sources.ts'
import {
  listSources,
  renderRefusal,
  type FlashFindings,
  type FlashOrder,
  type FlashRefusal,
} from './rules/flash.ts'

/** What is planned from one source. */
interface PlanOfSource extends AsyncDisposable {
  readonly disks: readonly Pick<FlashFindings, 'imageProblem' | 'refusals'>[]
}

/**
 * Calls `plan` with one source after the other. What the last one is refused for is returned, or
 * rejected with, as it is for an image in one place; nothing is written.
 */
export async function planFromSources<Plan extends PlanOfSource>(
  sources: Pick<Sources, 'open' | 'retryMs'>,
  order: FlashOrder,
  signal: AbortSignal,
  plan: (source: Source) => Promise<Plan>,
): Promise<Plan> {
  const { sha256, indexSha256 = null } = order.options
  await using undo = new AsyncDisposableStack()
  const locations = listSources(order)
  const list = undo.use(
    createSourceList({ sources, locations, sha256, signal, renew: order.renewSource }),
  )
  for (;;) {
    const source = await list.next()
    try {
      if (list.hasMore()) await checkIndex(source, indexSha256)
      const planned = await plan(source)
      const doubt = list.hasMore() ? findDoubt(planned) : null
      if (doubt === null) {
        const held = undo.move()
        return { ...planned, [Symbol.asyncDispose]: () => held.disposeAsync() }
      }
      list.refuse(doubt)
    } catch (thrown) {
      if (signal.aborted || !list.hasMore()) throw thrown
      list.refuse(thrown)
    }
  }
}

/** Rejects with a Fault where the source has another index, or cannot be read at its frames. */
async function checkIndex({ readAt, ...source }: Source, wanted: string | null): Promise<void> {
  if (wanted === null) return
  const map = readAt === null ? null : await readFrameMap({ ...source, readAt })
  if (map?.indexSha256 === wanted) return
  throw new Fault('digest-mismatch', `${source.name} does not have the index that was asked for`)
}

/** What another source might be without; null: nothing is wrong with the image. */
function findDoubt({ disks }: PlanOfSource): string | null {
  for (const { imageProblem, refusals } of disks) {
    const refusal = refusals.find(({ why }) => CONTENT.has(why))
    if (imageProblem !== null) return imageProblem
    if (refusal !== undefined) return renderRefusal(refusal)
  }
  return null
}

const CONTENT: ReadonlySet<FlashRefusal['why']> = new Set([
  'unknown-format',
  'image-empty',
  'image-too-big',
  'cannot-grow',
  'no-first-boot',
  'no-seed',
  'other-sectors',
])
