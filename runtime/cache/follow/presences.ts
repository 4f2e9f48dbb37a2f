/** Asks the followed cache what it has at an address: once for all who ask at the same time. */
import { Fault } from '../../kit/foundation/fault.ts'
import { refuse } from '../../kit/web/answers/faults.ts'
import type { Followed } from './followed.ts'
import { createNotes } from './notes.ts'
import type { AskedImage } from './rules/followed-address.ts'

/** What the followed cache has. */
export interface FollowedImage {
  readonly url: string
  /** Null: it is on its way there, and nobody knows its digest yet. */
  readonly sha256: string | null
  readonly sizeBytes: number | null
}

/** Milliseconds for which an answer of the followed cache counts. */
const ASKED_MS = 5000

/** Creates the questions; `elapsed` is in milliseconds, of a clock that nobody sets. */
export function createPresences(followed: Followed, elapsed: () => number) {
  const notes = createNotes<Promise<FollowedImage>>(elapsed, ASKED_MS)
  return {
    /**
     * `hops`: how many caches have passed the request on. Throws the refusal that its client gets,
     * or a Fault `upstream-failed` where the followed cache is away.
     */
    find(asked: AskedImage, hops: number): Promise<FollowedImage> {
      // In a circle of caches the request comes back, and would wait for its own answer.
      const key = `${asked.key} ${asked.wanted ?? ''} ${hops}`
      const before = notes.find(key)
      if (before !== undefined) return before
      const asking = ask(followed, asked, hops)
      notes.note(key, asking)
      asking.catch(() => notes.forget(key))
      return asking
    },
  }
}

async function ask(followed: Followed, asked: AskedImage, hops: number): Promise<FollowedImage> {
  const { base } = followed
  for (const url of asked.urls) {
    const seen = await followed.ask(url, hops)
    if (seen.kind === 'here') return found(asked, { ...seen, url })
    if (seen.kind === 'refused') {
      throw new Fault('upstream-failed', `the followed cache ${base} answered HTTP ${seen.status}`)
    }
  }
  const what = asked.wanted === null ? 'the image' : 'this version of the image'
  throw refuse(404, `${base}, which this cache follows, does not have ${what}`)
}

function found({ wanted }: AskedImage, { url, sha256, sizeBytes }: FollowedImage): FollowedImage {
  const isRight = wanted === null || sha256 === null || sha256 === wanted
  if (isRight) return { url, sha256, sizeBytes }
  throw refuse(404, 'the followed cache has another version of this image')
}
