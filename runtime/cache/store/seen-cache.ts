/** The cache as somebody sees it who has a scope: captures of their machines alone. */
import { Fault } from '#kit/foundation/fault.ts'
import { canSee, type Reach } from '#kit/web/answers/rules/rights.ts'
import type { Capture } from '#cache/captures/captures.ts'
import type { ImageCache } from './image-cache.ts'

/**
 * The cache as a person limited to these labels sees it. A capture is seen where every server that
 * ordered images of its machine gives it one of them. Uses by machines are hidden.
 */
export function createSeenCache(cache: ImageCache, reach: Exclude<Reach, null>): ImageCache {
  const { captures } = cache
  const isSeen = ({ source: { mac } }: Capture): boolean => {
    const known = mac === null ? [] : cache.listLabels(mac)
    return known.length > 0 && known.every((labels) => canSee(reach, labels))
  }
  return {
    ...cache,
    rows: () => cache.rows().map((row) => ({ ...row, machines: null, isPinned: false })),
    captures: {
      ...captures,
      list: () => captures.list().filter(isSeen),
      find(id) {
        const capture = captures.find(id)
        if (!isSeen(capture)) throw new Fault('not-found', 'there is no such capture')
        return capture
      },
    },
  }
}
