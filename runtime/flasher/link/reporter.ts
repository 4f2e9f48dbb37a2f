/** Posts a flash's progress to the server without slowing it: newest first, retried, and always the end. */
import { setTimeout as sleep } from 'node:timers/promises'
import {
  addReport,
  dropReport,
  EMPTY_QUEUE,
  isEnd,
  untilDue,
} from '#engine/flash/rules/run-report.ts'
import { decideDelay } from '#kit/net/rules/retry.ts'
import type { ProgressPost } from '#engine/inventory/rules/run.ts'
import type { ServerClient, Rejection } from './server-client.ts'
import { settle } from '#kit/host/watch.ts'

interface ReporterOptions {
  readonly client: Pick<ServerClient, 'sendProgress'>
  readonly signal: AbortSignal
  /** Milliseconds. */
  readonly retryMs?: number
  /** Milliseconds on a steady clock. */
  readonly now: () => number
}

const RETRY_MS = 1000

export function createReporter(options: ReporterOptions) {
  const { client, signal, retryMs = RETRY_MS, now } = options
  let queue = EMPTY_QUEUE
  let refusal: Rejection | null = null
  let trouble: string | null = null
  let sending: Promise<void> | null = null
  let wake = new AbortController()

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

  /** A new report ends a pause, but not one that a busy server asked for. */
  async function pause(ms: number, kind: 'fixed' | 'open' = 'open') {
    wake = new AbortController()
    const ends = kind === 'fixed' ? signal : AbortSignal.any([signal, wake.signal])
    await sleep(ms, undefined, { signal: ends, ref: false }).catch(() => undefined)
  }

  return {
    /** Neither waits nor throws. */
    post(report: ProgressPost) {
      if (refusal !== null || signal.aborted) return
      queue = addReport(queue, report)
      if (untilDue(queue, now()) === 0 || isEnd(report)) wake.abort()
      sending ??= send().finally(() => {
        sending = null
      })
    },
    /** Of the latest try; null: it succeeded. */
    trouble: () => trouble,
    /** Null: all reports arrived within `ms`. The rest is still tried afterwards. */
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

/** A report that the server does not understand must not hold up the others. */
const isUnprocessable = ({ status }: Rejection) => status === 413 || status === 422
