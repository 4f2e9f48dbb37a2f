/** One client of a live channel: at most one write under way, and only the newest of each kind kept. */
import { KEEP_ALIVE } from '../../core/net/event-stream.ts'

/** In the order in which they are sent. */
const KINDS = ['rows', 'bars'] as const
type Kind = (typeof KINDS)[number]

export interface Listener {
  readonly body: ReadableStream<Uint8Array>
  /** Replaces what was not sent yet of this kind. */
  offer(kind: Kind, frame: Uint8Array, now: number): void
  /** Sent only where nothing else is waiting. */
  keepAlive(): void
  /** Since when something waits that the client does not take; null: it keeps up. */
  stalledSince(): number | null
  /** Ends the stream; a client that has stalled is cut off. */
  close(): void
}

const COMMENT = new TextEncoder().encode(KEEP_ALIVE)

/** `ended` is called once, whoever ended it. */
export function createListener(ended: () => void): Listener {
  const pending = new Map<Kind, { readonly frame: Uint8Array; readonly since: number }>()
  let wanted: (() => void) | null = null
  let isClosed = false
  let controller: ReadableStreamDefaultController<Uint8Array> | null = null

  function finish() {
    if (isClosed) return
    isClosed = true
    pending.clear()
    wanted?.()
    ended()
  }

  /** Hands over what waits, if the client asks; it asks again when that has gone out. */
  function hand(): void {
    const kind = KINDS.find((each) => pending.has(each))
    const next = kind === undefined ? undefined : pending.get(kind)
    if (kind === undefined || next === undefined || wanted === null || controller === null) return
    const resolve = wanted
    pending.delete(kind)
    wanted = null
    controller.enqueue(next.frame)
    resolve()
  }

  const body = new ReadableStream<Uint8Array>(
    {
      start(made) {
        controller = made
      },
      pull() {
        if (isClosed) return undefined
        return new Promise<void>((resolve) => {
          wanted = resolve
          hand()
        })
      },
      cancel: finish,
    },
    { highWaterMark: 0 },
  )

  return {
    body,
    offer(kind, frame, now) {
      if (isClosed) return
      pending.set(kind, { frame, since: pending.get(kind)?.since ?? now })
      hand()
    },
    keepAlive() {
      if (isClosed || pending.size > 0 || wanted === null || controller === null) return
      const resolve = wanted
      wanted = null
      controller.enqueue(COMMENT)
      resolve()
    },
    stalledSince: () =>
      pending.size === 0 ? null : Math.min(...[...pending.values()].map(({ since }) => since)),
    close() {
      if (isClosed) return
      const isStalled = pending.size > 0
      finish()
      // An error makes the server cut the connection: an end would wait for the client for ever.
      if (isStalled) controller?.error(new Error('the client does not read'))
      else controller?.close()
    },
  }
}
