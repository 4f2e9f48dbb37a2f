/** Posts a flash's progress to the server without slowing it: newest first, retried, and always the end. */
import { setTimeout as sleep } from 'node:timers/promises'
import {
  addReport,
  dropReport,
  EMPTY_QUEUE,
  isEnd,
  untilDue,
} from '../../engine/flash/rules/report.ts'
import { decideDelay } from '../../kit/net/rules/retry.ts'
import type { ProgressPost } from '../../engine/inventory/rules/run.ts'
import type { ServerClient } from './server-client.ts'
import type { Rejection } from './server-exchange.ts'
import { settle } from '../../kit/host/watch.ts'

interface ReporterOptions {
  readonly client: Pick<ServerClient, 'sendProgress'>
  readonly signal: AbortSignal
  /** Milliseconds before the first repeat. */
  readonly retryMs?: number
  /** Milliseconds on a steady clock. */
  readonly now: () => number
}

const RETRY_MS = 1000

/**
 * Creates the reporter of one run; `retryMs` is the first pause between two tries, in milliseconds.
 */
export function createReporter(options: ReporterOptions) {
  const { client, signal, retryMs = RETRY_MS, now } = options
  let queue = EMPTY_QUEUE
  let refusal: Rejection | null = null
  let trouble: string | null = null
  let sending: Promise<void> | null = null
  let wake = new AbortController()

  /** Until there is nothing left to send, or nobody to send it to. */
  async function send() {
    for (let tries = 0; refusal === null;) {
      const due = untilDue(queue, now())
      const [next] = queue.waiting
      if (due === null || next === undefined) return
      if (due > 0) {
        await pause(due)
        continue
      }
      const sent = await client.sendProgress(next)
      trouble = sent.ok ? null : sent.refusal.reason
      if (sent.ok || isUnprocessable(sent.refusal)) {
        tries = 0
        queue = dropReport(queue, next, now())
      } else if (sent.refusal.isPassing) {
        tries += 1
        await pause(sent.refusal.waitMs ?? decideDelay(tries, retryMs, Math.random()), 'fixed')
      } else refusal = sent.refusal
    }
  }

  /** A report that is due ends a pause; a pause that a busy server asks for is kept. */
  async function pause(ms: number, kind: 'fixed' | 'open' = 'open') {
    wake = new AbortController()
    const ends = kind === 'fixed' ? signal : AbortSignal.any([signal, wake.signal])
    await sleep(ms, undefined, { signal: ends, ref: false }).catch(() => undefined)
  }

  return {
    /** Takes a report of the run; nothing is waited for and nothing thrown. */
    post(report: ProgressPost) {
      if (refusal !== null || signal.aborted) return
      queue = addReport(queue, report)
      if (untilDue(queue, now()) === 0 || isEnd(report)) wake.abort()
      sending ??= send().finally(() => {
        sending = null
      })
    },
    /** Why the newest try failed; null: it did not. */
    trouble: () => trouble,
    /**
     * Waits until all reports have arrived, or cannot: at most so many milliseconds. The rejection that
     * ended it; null: all of them arrived. What has not arrived by then is still tried.
     */
    async flush(ms: number): Promise<Rejection | null> {
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
const isUnprocessable = ({ status }: Rejection) => status === 413 || status === 422
