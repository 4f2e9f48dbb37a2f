/** One client of a live channel: at most one write under way, and only the newest snapshot kept. */
import { KEEP_ALIVE } from '../core/event-stream.ts'

export interface Listener {
  readonly body: ReadableStream<Uint8Array>
  /** Replaces what was not sent yet. */
  offer(frame: Uint8Array, now: number): void
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
  let pending: { readonly frame: Uint8Array; readonly since: number } | null = null
  let wanted: (() => void) | null = null
  let isClosed = false
  let controller: ReadableStreamDefaultController<Uint8Array> | null = null

  function finish() {
    if (isClosed) return
    isClosed = true
    pending = null
    wanted?.()
    ended()
  }

  /** Hands over what waits, if the client asks; it asks again when that has gone out. */
  function hand(): void {
    if (pending === null || wanted === null || controller === null) return
    const { frame } = pending
    const resolve = wanted
    pending = null
    wanted = null
    controller.enqueue(frame)
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
    offer(frame, now) {
      if (isClosed) return
      pending = { frame, since: pending?.since ?? now }
      hand()
    },
    keepAlive() {
      if (isClosed || pending !== null || wanted === null || controller === null) return
      const resolve = wanted
      wanted = null
      controller.enqueue(COMMENT)
      resolve()
    },
    stalledSince: () => pending?.since ?? null,
    close() {
      if (isClosed) return
      const isStalled = pending !== null
      finish()
      // An error makes the server cut the connection: an end would wait for the client for ever.
      if (isStalled) controller?.error(new Error('the client does not read'))
      else controller?.close()
    },
  }
}
