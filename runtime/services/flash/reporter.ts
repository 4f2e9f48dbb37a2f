/** Sends what a flash tells to the server, never in its way: newest first, retried, the end for certain. */
import { setTimeout as sleep } from 'node:timers/promises'
import { addReport, dropReport, EMPTY_QUEUE, isEnd, untilDue } from '../../core/flash/report.ts'
import { decideDelay } from '../../core/net/retry.ts'
import type { ProgressPost } from '../../core/machine/run.ts'
import type { ServerClient } from '../net/server-client.ts'
import type { Rejection } from '../net/server-exchange.ts'
import { settle } from '../host/watch.ts'

export interface Reporter {
  /** Takes news of the run; nothing is waited for and nothing thrown. */
  tell(report: ProgressPost): void
  /**
   * Waits until all that was told has arrived, or cannot: at most so many milliseconds. The refusal
   * that ended it; null: all of it arrived. What has not by then is still tried.
   */
  flush(ms: number): Promise<Rejection | null>
}

interface ReporterOptions {
  readonly client: Pick<ServerClient, 'sendProgress'>
  readonly signal: AbortSignal
  /** Milliseconds before the first repeat. */
  readonly retryMs?: number
  /** Milliseconds on a steady clock. */
  readonly now: () => number
}

const RETRY_MS = 1000

/** One run's. */
export function createReporter(options: ReporterOptions): Reporter {
  const { client, signal, retryMs = RETRY_MS, now } = options
  let queue = EMPTY_QUEUE
  let refusal: Rejection | null = null
  let sending: Promise<void> | null = null
  let wake = new AbortController()

  /** Until there is nothing left to send, or nobody to send it to. */
  async function send() {
    for (let tries = 0; refusal === null;) {
      const due = untilDue(queue, now())
      const [next] = queue.waiting
      if (due === null || next === undefined) return
      if (due > 0) {
        await rest(due)
        continue
      }
      const told = await client.sendProgress(next)
      if (told.ok || isOdd(told.refusal)) {
        tries = 0
        queue = dropReport(queue, next, now())
      } else if (told.refusal.isPassing) {
        tries += 1
        await rest(told.refusal.waitMs ?? decideDelay(tries, retryMs, Math.random()), 'fixed')
      } else refusal = told.refusal
    }
  }

  /** News that are due end a rest; what a busy server asks for is kept. */
  async function rest(ms: number, kind: 'fixed' | 'open' = 'open') {
    wake = new AbortController()
    const ends = kind === 'fixed' ? signal : AbortSignal.any([signal, wake.signal])
    await sleep(ms, undefined, { signal: ends, ref: false }).catch(() => undefined)
  }

  return {
    tell(report) {
      if (refusal !== null || signal.aborted) return
      queue = addReport(queue, report)
      if (untilDue(queue, now()) === 0 || isEnd(report)) wake.abort()
      sending ??= send().finally(() => {
        sending = null
      })
    },
    async flush(ms) {
      const isOver = await settle(sending ?? Promise.resolve(), ms)
      return isOver ? refusal : LATE
    },
  }
}

const LATE: Rejection = {
  reason: 'the server does not answer',
  status: null,
  isPassing: true,
  waitMs: null,
}

/** One report that the server does not understand spoils none of the others. */
const isOdd = ({ status }: Rejection) => status === 413 || status === 422
