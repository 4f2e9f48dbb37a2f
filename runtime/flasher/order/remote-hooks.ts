/** Runs around every flash: reports it to the server, and has the firmware boot the disk once if asked. */
import type { FlashPlan } from '../../engine/flash/rules/flash.ts'
import type { InventoryDisk } from '../../engine/inventory/rules/machine.ts'
import { renderDuration } from '../../kit/foundation/rate.ts'
import { fill } from '../../kit/texts/text.ts'
import { WIZARD_TEXTS } from '../texts/texts.ts'
import type { ProgressPost, RunMode } from '../../engine/inventory/rules/run.ts'
import type { HardwareReader } from '../../engine/inventory/hardware-reader.ts'
import type { Marks } from '../../kit/host/marks.ts'
import type { Disks } from '../../engine/disk/disks.ts'
import type { Nvram } from '../../engine/disk/nvram.ts'
import type { Power } from '../live-system/power.ts'
import type { Environment } from '../../kit/host/shell.ts'
import { createReporter, type Reporter } from '../link/reporter.ts'
import type { ServerClient } from '../link/server-client.ts'
import type { Rejection } from '../link/server-exchange.ts'
import { settle, untilAborted } from '../../kit/host/watch.ts'
import {
  endReport,
  listGiven,
  listLeft,
  milestone,
  nextReport,
  reportPhase,
  startReport,
  type RunFacts,
} from '../../engine/flash/rules/run-report.ts'
import { findTemplate } from './template-offer.ts'
import { NO_AFTERMATH, type FlashChoice, type Hooks } from '../wizard/flow/start.ts'
import { renderLog } from './remote-log.ts'

const TEXTS = WIZARD_TEXTS.report

/** What the server-driven mode and the hooks require. */
export interface RemoteDependencies {
  readonly disks: Pick<Disks, 'survey'>
  readonly hardware: HardwareReader
  readonly nvram: Nvram
  readonly power: Power
  readonly marks: Marks
  /** `FLASHER_PXE_TOKEN`, `FLASHER_REGISTER_UEFI_BOOT`. */
  readonly env: Environment
  readonly signal: AbortSignal
  /** Milliseconds on a steady clock. */
  readonly now: () => number
  /** Loop devices count as disks; where disks are named by place. For trying things out. */
  readonly loops?: boolean
  readonly placeNames?: string
  /** The file of UEFI's variable `SecureBoot`; the kernel's own when absent. */
  readonly secureBoot?: string
  readonly times?: Partial<RemoteTimes>
}

interface HookDependencies extends Omit<RemoteDependencies, 'disks'> {
  /** Null: standalone, so nothing is reported. */
  readonly client: ServerClient | null
  readonly mode: RunMode
  /** Whether the firmware shall boot the flashed disk once. */
  readonly registersBoot: boolean
  /** The disks as they were last sent to the server. */
  readonly disks: () => readonly InventoryDisk[]
  /** The last lines that the person saw, for the log of a failure. */
  readonly transcript: () => readonly string[]
}

/** Milliseconds. */
interface RemoteTimes {
  /** How long disks and plan are asked for again when the server does not answer. */
  readonly contact: number
  /** How long the end is reported again to a server that does not answer. */
  readonly report: number
  /** How long a person waits for a failure to be reported; it goes on in the background. */
  readonly failure: number
  /** How long the server may be silent before the screen shows it. */
  readonly silence: number
  readonly retry: number
}

export const TIMES: RemoteTimes = {
  contact: 30_000,
  report: 10 * 60_000,
  failure: 5000,
  silence: 2000,
  retry: 1000,
}

/** One flash under way. */
interface RunningFlash {
  readonly facts: RunFacts
  readonly reporter: Reporter | null
  readonly times: RemoteTimes
  readonly began: number
  /** How far it came, in lines. */
  readonly steps: string[]
  last: ProgressPost
}

export function createHooks(given: HookDependencies): Hooks {
  const { marks } = given
  let flash: RunningFlash | null = null

  return {
    findTemplate: () => findTemplate(given.client),
    onEvent(event, choice, plan) {
      if (event.event === 'started') {
        flash = begin(given, choice, plan)
        flash.reporter?.post(flash.last)
        const { image, disk } = choice
        void marks.status(fill(WIZARD_TEXTS.driven.statusFlash, { image: image.name, disk }))
      }
      const report = flash === null ? null : nextReport(flash.last, event)
      if (flash !== null && report !== null) post(given, flash, report)
    },
    async onEnd(end, choice, say, enough = NEVER) {
      // A flash that its checks refused is worth reporting when nobody is there to see it.
      if (flash === null && !choice.unattended) return NO_AFTERMATH
      const running = flash ?? begin(given, choice, null)
      flash = null
      if (end.kind !== 'done') {
        post(given, running, endReport(running.facts, running.last, end))
        const reporting = reportFailure(given, running, end.reason, choice.unattended)
        await settle(reporting, running.times.failure)
        return NO_AFTERMATH
      }
      const bootEntry = given.registersBoot ? await bootOnce(given, running, end.plan, say) : null
      post(given, running, endReport(running.facts, running.last, end))
      // A person who does not want to wait is not held; the report goes on in the background.
      const reporting = untilAborted(enough, reportDone(given, running, say))
      const rejection = await reporting.catch(() => NOT_WAITED_FOR)
      return { notice: rejection === null ? null : renderUnreported(rejection), bootEntry }
    },
  }
}

function begin(given: HookDependencies, choice: FlashChoice, plan: FlashPlan | null): RunningFlash {
  const { client, signal, now } = given
  const disk = given.disks().find(({ path }) => path === choice.disk) ?? null
  const facts: RunFacts = { run: crypto.randomUUID(), mode: given.mode, choice, plan, disk }
  const times = { ...TIMES, ...given.times }
  const reporter =
    client === null ? null : createReporter({ client, signal, now, retryMs: times.retry })
  return { facts, reporter, times, began: now(), steps: [], last: startReport(facts) }
}

function post({ marks, now }: HookDependencies, running: RunningFlash, report: ProgressPost) {
  const passed = milestone(running.last, report, running.facts.plan?.image.sizeBytes ?? null)
  const step = passed ?? (report.phase === running.last.phase ? null : report.phase)
  if (step !== null) {
    void marks.status(step)
    running.steps.push(`${renderDuration((now() - running.began) / 1000)} ${step}`)
  }
  const isEnd = report.phase === 'done' || report.phase === 'failed' || report.phase === 'cancelled'
  running.steps.push(...listLeft(running.last, report), ...(isEnd ? listGiven(report) : []))
  running.last = report
  running.reporter?.post(report)
}

async function bootOnce(
  given: HookDependencies,
  running: RunningFlash,
  { target }: FlashPlan,
  say: Say,
): Promise<string> {
  post(given, running, reportPhase(running.last, 'uefi'))
  const set = await given.nvram.bootOnce(target)
  const line = set.ok
    ? fill(TEXTS.bootSet, { outcome: set.value })
    : fill(TEXTS.bootNotSet, { disk: target.path, reason: set.refusal })
  say(line)
  return line
}

/** The server's own copy of the run first: what ends the cycle also ends the run. */
async function reportDone(
  { client, now }: HookDependencies,
  { facts, reporter, times }: RunningFlash,
  say: Say,
): Promise<Rejection | null> {
  if (client === null || reporter === null) return null
  const end = now() + times.report
  const left = () => renderDuration((end - now()) / 1000)
  const flushing = reporter.flush(times.report)
  for (let wait = times.silence; !(await settle(flushing, wait)); wait = times.silence * 15) {
    say(fill(TEXTS.silent, { time: left() }))
  }
  const time = {
    ms: Math.max(0, end - now()),
    onRetry: ({ reason }: Rejection) => say(fill(TEXTS.tryingAgain, { reason, time: left() })),
  }
  const sent = await client.sendDone(time, facts.run)
  return sent.ok ? null : sent.refusal
}

async function reportFailure(
  given: HookDependencies,
  { facts, reporter, steps, times }: RunningFlash,
  reason: string,
  isOrdered: boolean,
): Promise<void> {
  const { client } = given
  if (client === null) return
  // The run's own report first: it tells a cancel from a failure.
  await reporter?.flush(times.report)
  if (isOrdered) await client.sendFailure(reason, { ms: times.report })
  await client.sendLog(facts.run, await renderLog(given, steps, reason))
}

type Say = (line: string) => void

const NEVER = new AbortController().signal
const NOT_WAITED_FOR = { reason: TEXTS.notWaitedFor }

const renderUnreported = ({ reason }: Pick<Rejection, 'reason'>) =>
  fill(TEXTS.notReported, { reason })
