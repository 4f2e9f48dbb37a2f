/** Runs around every flash: reports it to the server, and has the firmware boot the disk once if asked. */
import type { FlashPlan, FlashEvent } from '#engine/flash/rules/flash.ts'
import type { InventoryDisk } from '#engine/inventory/rules/machine.ts'
import type { RunMode, ProgressPost } from '#engine/inventory/rules/run.ts'
import type { HardwareReader } from '#engine/inventory/hardware-reader.ts'
import type { Marks } from '#kit/host/marks.ts'
import type { Disks } from '#engine/disk/disks.ts'
import type { Nvram } from '#engine/disk/nvram.ts'
import type { Power } from '#flasher/live-system/power.ts'
import type { Environment } from '#kit/host/shell.ts'
import type { PeerPaths } from '#flasher/link/peer-window.ts'
import type { ServerClient } from '#flasher/link/server-client.ts'
import type { Rejection } from '#flasher/link/server-exchange.ts'
import { settle, untilAborted } from '#kit/host/watch.ts'
import {
  reportPhase,
  endReport,
  listGiven,
  listLeft,
  milestone,
  nextReport,
  startReport,
  type ReportedEnd,
  type RunFacts,
  isEnd,
} from '#engine/flash/rules/run-report.ts'
import { findTemplate } from './first-boot-fetcher.ts'
import { NO_AFTERMATH, type Hooks, type FlashChoice } from './rules/flash-choice.ts'
import { printable } from '#kit/foundation/printable.ts'
import { renderDuration } from '#kit/foundation/size.ts'
import { createReporter } from '#flasher/link/reporter.ts'

// Follows one run, a flash or a capture: reports it to the server, its steps to whoever looks on, and its end until the server has it.

/** Milliseconds. */
interface ReportTimes {
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
        say(reason === null ? renderSilence(left()) : renderRetry(reason, left()))
      }
      const time = {
        ms: Math.max(0, end - now()),
        onRetry: ({ reason }: Rejection) => say(renderRetry(reason, left())),
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

export interface RemoteDependencies {
  readonly disks: Pick<Disks, 'survey'>
  readonly hardware: HardwareReader
  readonly nvram: Nvram
  readonly power: Power
  readonly marks: Marks
  readonly env: Environment
  readonly signal: AbortSignal
  /** Milliseconds on a steady clock. */
  readonly now: () => number
  /** For trials: loop devices count as disks, and disks are named by place. */
  readonly loops?: boolean
  readonly placeNames?: string
  /** UEFI's variable `SecureBoot`; absent: the kernel's file. */
  readonly secureBoot?: string
  readonly times?: Partial<RemoteTimes>
  /** Absent: the places of a live system. */
  readonly peerPaths?: PeerPaths
}

interface HookDependencies extends Omit<RemoteDependencies, 'disks'> {
  /** Null: standalone, so nothing is reported. */
  readonly client: ServerClient | null
  readonly mode: RunMode
  readonly registersBoot: boolean
  /** As last sent to the server. */
  readonly disks: () => readonly InventoryDisk[]
  /** The last lines on the screen, for the log of a failure. */
  readonly transcript: () => readonly string[]
}

/** Milliseconds. */
interface RemoteTimes extends ReportTimes {
  /** Silence of all servers after which disks, plan and first-boot configuration are given up. */
  readonly contact: number
}

/** A person who has mistyped the address learns it soon. */
const TIMES: RemoteTimes = { ...REPORT_TIMES, contact: 30_000 }

/** In the live system nobody may watch, and a server may restart or fail over. */
const LIVE_CONTACT_MS = 10 * 60_000

/** Milliseconds. */
export const decideTimes = ({
  env,
  times,
}: Pick<RemoteDependencies, 'env' | 'times'>): RemoteTimes => ({
  ...TIMES,
  ...(env['FLASHER_LIVE'] === '1' ? { contact: LIVE_CONTACT_MS } : {}),
  ...times,
})

export function createHooks(given: HookDependencies): Hooks {
  const { marks } = given
  let flash: ReportedFlash | null = null

  return {
    findTemplate: () => findTemplate(given.client),
    onEvent(event, choice, plan) {
      if (event.event === 'started') {
        flash = begin(given, choice, plan)
        const { image, disk } = choice
        void marks.status(`flash of ${image.name} to ${disk}`)
      }
      flash?.follow(event)
    },
    async onEnd(end, choice, say, enough = NEVER) {
      // A person has seen that the checks refused the flash.
      if (flash === null && !choice.unattended) return NO_AFTERMATH
      const running = flash ?? begin(given, choice, null)
      flash = null
      if (end.kind !== 'done') {
        running.end(end)
        const reporting = reportFailure(given, running, end.reason, choice.unattended)
        await settle(reporting, running.times.failure)
        return NO_AFTERMATH
      }
      const bootEntry = given.registersBoot ? await bootOnce(given, running, end.plan, say) : null
      running.end(end)
      // An operator may leave; the report goes on in the background.
      const reporting = untilAborted(enough, running.sendDone(say, true))
      const rejection = await reporting.catch(() => NOT_WAITED_FOR)
      return { notice: rejection === null ? null : renderUnreported(rejection), bootEntry }
    },
  }
}

function begin(
  given: HookDependencies,
  choice: FlashChoice,
  plan: FlashPlan | null,
): ReportedFlash {
  const { mode, marks } = given
  const disk = given.disks().find(({ path }) => path === choice.disk) ?? null
  return createFlashRun(
    { mode, choice, plan, disk },
    { ...given, onStep: ({ text }) => void marks.status(text) },
  )
}

async function bootOnce(
  given: HookDependencies,
  running: ReportedFlash,
  { target }: FlashPlan,
  say: Say,
): Promise<string> {
  running.post(reportPhase(running.last(), 'uefi'))
  const set = await given.nvram.bootOnce(target)
  const line = set.ok
    ? `UEFI: ${set.value}.`
    : `UEFI: no one-shot boot of ${target.path}: ${set.refusal}.`
  say(line)
  return line
}

async function reportFailure(
  given: HookDependencies,
  running: ReportedFlash,
  reason: string,
  isOrdered: boolean,
): Promise<void> {
  const { client } = given
  const { times } = running
  if (client === null) return
  // The run's own report first: it tells a cancel from a failure.
  await running.flush(times.report)
  if (isOrdered) await client.sendFailure(reason, { ms: times.report })
  await running.sendLog(reason, given)
}

type Say = (line: string) => void

const NEVER = new AbortController().signal
const NOT_WAITED_FOR = { reason: 'its answer was not waited for' }

const renderSilence = (time: string) =>
  `The server does not answer; trying again, for ${time} more.`

const renderRetry = (reason: string, time: string) =>
  `Not reported yet (${reason}); trying again, for ${time} more.`

const renderUnreported = ({ reason }: Pick<Rejection, 'reason'>) =>
  `The disk is flashed, but the server could not be notified (${reason}), so it would flash this machine again. Reboot when the server is back, or boot the disk by hand.`
