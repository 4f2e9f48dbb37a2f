/** Follows one run, a flash or a capture: reports it to the server, its steps to whoever looks on, and its end until the server has it. */
import type { FlashEvent } from '#engine/flash/rules/flash.ts'
import {
  endReport,
  listGiven,
  listLeft,
  milestone,
  nextReport,
  startReport,
  type ReportedEnd,
  type RunFacts,
} from '#engine/flash/rules/run-report.ts'
import { isEnd } from '#engine/flash/rules/report.ts'
import type { HardwareReader } from '#engine/inventory/hardware-reader.ts'
import type { ProgressPost } from '#engine/inventory/rules/run.ts'
import { printable } from '#kit/foundation/printable.ts'
import { renderDuration } from '#kit/foundation/rate.ts'
import { settle } from '#kit/host/watch.ts'
import { fill } from '#kit/texts/text.ts'
import { createReporter } from '#flasher/link/reporter.ts'
import type { ServerClient } from '#flasher/link/server-client.ts'
import type { Rejection } from '#flasher/link/server-exchange.ts'
import { WIZARD_TEXTS } from '#flasher/texts/texts.ts'

const TEXTS = WIZARD_TEXTS.report

/** Milliseconds. */
export interface ReportTimes {
  /** How long the last report is repeated to a silent server. */
  readonly report: number
  /** A person waits so long; the report goes on in the background. */
  readonly failure: number
  /** Silence of the server that the screen does not show yet. */
  readonly silence: number
  readonly retry: number
}

/** After a longer absence the server learns the end from a person. */
export const REPORT_TIMES: ReportTimes = {
  report: 10 * 60_000,
  failure: 5000,
  silence: 2000,
  retry: 1000,
}

interface ReportingOptions {
  /** Null: no server is known, so nothing is sent. */
  readonly client: ServerClient | null
  readonly signal: AbortSignal
  /** Milliseconds on a steady clock. */
  readonly now: () => number
  readonly times?: Partial<ReportTimes>
  /** `write 50%`, or the phase that began. */
  onStep?(step: RunStep): void
}

interface RunStep {
  readonly text: string
  /** A share of the bytes; else a phase began. */
  readonly isShare: boolean
}

export type ReportedRun = ReturnType<typeof createRun>
export type ReportedFlash = ReturnType<typeof createFlashRun>

/** `first` is sent when it is posted, and later reports are compared with it. */
export function createRun(first: ProgressPost, options: ReportingOptions) {
  const { client, signal, now } = options
  const times = { ...REPORT_TIMES, ...options.times }
  const reporter =
    client === null ? null : createReporter({ client, signal, now, retryMs: times.retry })
  const began = now()
  const steps: string[] = []
  let last = first
  const flush = async (ms: number) => (reporter === null ? null : await reporter.flush(ms))

  return {
    id: first.run,
    times,
    last: () => last,
    steps: (): readonly string[] => steps,
    /** `storedBytes`: of the image file; null: unknown. Does not wait. */
    post(report: ProgressPost, storedBytes: number | null = null) {
      const share = milestone(last, report, storedBytes)
      const text = share ?? (report.phase === last.phase ? null : report.phase)
      if (text !== null) {
        steps.push(`${renderDuration((now() - began) / 1000)} ${text}`)
        options.onStep?.({ text, isShare: share !== null })
      }
      steps.push(...listLeft(last, report), ...(isEnd(report) ? listGiven(report) : []))
      last = report
      reporter?.post(report)
    },
    /** Waits at most so many milliseconds; null: the server has all reports. */
    flush,
    /**
     * The run's own report first, so that what ends the cycle also ends the run. Null: the server
     * knows.
     */
    async sendDone(say: (line: string) => void, isNamed: boolean): Promise<Rejection | null> {
      if (client === null) return null
      const end = now() + times.report
      const left = () => renderDuration((end - now()) / 1000)
      const flushing = flush(times.report)
      for (let wait = times.silence; !(await settle(flushing, wait)); wait = times.silence * 15) {
        const reason = reporter?.trouble() ?? null
        const text = reason === null ? TEXTS.silent : TEXTS.tryingAgain
        say(fill(text, { reason: reason ?? '', time: left() }))
      }
      const time = {
        ms: Math.max(0, end - now()),
        onRetry: ({ reason }: Rejection) => say(fill(TEXTS.tryingAgain, { reason, time: left() })),
      }
      const sent = await client.sendDone(time, isNamed ? first.run : null)
      return sent.ok ? null : sent.refusal
    },
    /** After the reports of the run. */
    async sendLog(reason: string, seen: SeenAtFailure): Promise<void> {
      await client?.sendLog(first.run, await renderLog(steps, reason, seen))
    },
  }
}

export function createFlashRun(given: Omit<RunFacts, 'run'>, options: ReportingOptions) {
  const facts: RunFacts = { run: crypto.randomUUID(), ...given }
  const storedBytes = facts.plan?.image.sizeBytes ?? null
  const run = createRun(startReport(facts), options)
  return {
    ...run,
    follow(event: FlashEvent) {
      const report = event.event === 'started' ? run.last() : nextReport(run.last(), event)
      if (report !== null) run.post(report, storedBytes)
    },
    /** The last report holds what the server missed of the others. */
    end: (end: ReportedEnd) => run.post(endReport(facts, run.last(), end), storedBytes),
  }
}

interface SeenAtFailure {
  readonly hardware: Pick<HardwareReader, 'readKernelLog'>
  readonly transcript: () => readonly string[]
}

/** The server keeps the tail of what is longer. */
const MAX_LOG_CHARACTERS = 200_000

async function renderLog(
  steps: readonly string[],
  reason: string,
  { hardware, transcript }: SeenAtFailure,
): Promise<string> {
  const kernel = await hardware.readKernelLog()
  const lines = [
    `failed: ${reason}`,
    '',
    '--- the last lines on the screen',
    ...transcript(),
    ...steps,
    '',
    '--- the last lines of the kernel',
    ...kernel,
  ]
  return `${lines.map(printable).join('\n')}\n`.slice(-MAX_LOG_CHARACTERS)
}
