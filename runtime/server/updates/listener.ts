/** One client of a live channel: at most one write at a time, and only the newest message of each view and kind. */
import { KEEP_ALIVE } from '#kit/net/rules/event-stream.ts'

/** Rows are sent before bars. */
type UpdateKind = 'rows' | 'bars'

interface PendingUpdate {
  readonly kind: UpdateKind
  readonly message: Uint8Array
  readonly since: number
}

export type Listener = ReturnType<typeof createListener>

const COMMENT = new TextEncoder().encode(KEEP_ALIVE)

/** Not h3's `createEventStream`: that keeps every message for a client that does not read. */
export function createListener(ended: () => void) {
  const pending = new Map<string, PendingUpdate>()
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

  function send(message: Uint8Array, resolve: () => void): void {
    wanted = null
    controller?.enqueue(message)
    resolve()
  }

  function sendNext(): void {
    if (wanted === null || pending.size === 0) return
    const all = [...pending]
    const [key, next] = all.find(([, { kind }]) => kind === 'rows') ?? all[0] ?? []
    if (key === undefined || next === undefined) return
    pending.delete(key)
    send(next.message, wanted)
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
          sendNext()
        })
      },
      cancel: finish,
    },
    { highWaterMark: 0 },
  )

  return {
    body,
    /** Replaces the unsent one of this view and kind. */
    offer(kind: UpdateKind, view: string, message: Uint8Array, now: number): void {
      if (isClosed) return
      const key = `${kind}${view}`
      pending.set(key, { kind, message, since: pending.get(key)?.since ?? now })
      sendNext()
    },
    /** Only where nothing else is waiting. */
    keepAlive(): void {
      if (!isClosed && pending.size === 0 && wanted !== null) send(COMMENT, wanted)
    },
    /** Since when the client takes nothing; null: it keeps up. */
    stalledSince: () =>
      pending.size === 0 ? null : Math.min(...[...pending.values()].map(({ since }) => since)),
    /** Cuts off a client that still has to take a message. */
    close(): void {
      if (isClosed) return
      const isStalled = pending.size > 0 || wanted === null
      finish()
      // An error cuts the connection: an end would wait for the client for ever.
      if (isStalled) controller?.error(new Error('the client does not read'))
      else controller?.close()
    },
  }
}
