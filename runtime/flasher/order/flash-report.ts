/** Reports a flash to the server: its progress, that it is done, or why it failed. */
import type { FlashEvent, FlashPlan } from '../../engine/flash/rules/flash.ts'
import {
  endReport,
  milestone,
  nextReport,
  startReport,
  type ReportedEnd,
  type RunFacts,
} from '../../engine/flash/rules/run-report.ts'
import { renderDuration } from '../../kit/foundation/rate.ts'
import type { ProgressPost } from '../../engine/inventory/rules/run.ts'
import { decodePart } from '../../kit/net/rules/image-location.ts'
import { createReporter } from '../link/reporter.ts'
import { settle } from '../../kit/host/watch.ts'
import type { ServerClient } from '../link/server-client.ts'

export type FlashReport = ReturnType<typeof createFlashReport>

interface Ordered {
  /** The image's URL. */
  readonly image: string
  readonly target: string
}

/** A server that is away for longer hears of the end from a person. */
const DONE_MS = 10 * 60_000
/** For a failure, after which a person is asked anyway. */
const FAILURE_MS = 5000

/** Milliseconds. */
const now = () => performance.now()

/** `client`: null where no server is known; then nothing is sent. */
export function createFlashReport(
  client: ServerClient | null,
  signal: AbortSignal,
  say: (line: string) => void,
) {
  const reporter = client === null ? null : createReporter({ client, signal, now })
  let facts: RunFacts | null = null
  let last: ProgressPost | null = null

  return {
    /** Before the checks: a flash that they refuse was ordered, too. */
    begin({ image, target }: Ordered) {
      facts = { run: crypto.randomUUID(), mode: 'flash', choice: choose(image, target), ...UNSEEN }
    },
    /** Each event of the flash, as it comes. */
    follow(event: FlashEvent, plan: FlashPlan) {
      if (facts === null) return
      if (event.event === 'started') facts = { ...facts, plan }
      const before = last ?? startReport(facts)
      const next = event.event === 'started' ? before : nextReport(before, event)
      if (next === null) return
      const passed = milestone(before, next, plan.image.sizeBytes)
      if (passed !== null) say(passed)
      last = next
      reporter?.post(next)
    },
    /** The last report of the run; what the server misses of the others is in it. */
    async end(end: ReportedEnd): Promise<void> {
      if (facts === null || reporter === null) return
      reporter.post(endReport(facts, last ?? startReport(facts), end))
      await reporter.flush(end.kind === 'done' ? DONE_MS : FAILURE_MS)
    },
    /** Null: the server knows. Otherwise why not. */
    async sendDone(): Promise<string | null> {
      if (client === null) return 'no server is known'
      const end = now() + DONE_MS
      const sent = await client.sendDone({
        ms: DONE_MS,
        onRetry({ reason }) {
          const left = renderDuration((end - now()) / 1000)
          say(`The server cannot be notified (${reason}). Trying again for ${left} ...`)
        },
      })
      return sent.ok ? null : sent.refusal.reason
    },
    /** Best effort: servers of earlier releases do not take it. */
    async sendFailure(reason: string): Promise<void> {
      if (client === null) return
      await settle(client.sendFailure(reason, { ms: FAILURE_MS }), FAILURE_MS)
    },
  }
}

const UNSEEN = { plan: null, disk: null } as const

const choose = (image: string, disk: string): RunFacts['choice'] => ({
  image: {
    name: nameOf(image),
    location: image,
    format: null,
    sizeBytes: null,
    sha256: null,
    ref: null,
  },
  disk,
})

/** The file's own name: the server encodes it for its address. */
function nameOf(url: string): string {
  const last = url.split(/[?#]/, 1)[0]?.split('/').at(-1) ?? ''
  return decodePart(last) ?? last
}
