/** What happens around every flash: the server hears of it, the firmware boots the disk once if asked. */
import type { FlashPlan } from '../../../../core/flash/flash.ts'
import type { InventoryDisk } from '../../../../core/machine/machine.ts'
import { printable } from '../../../../core/foundation/printable.ts'
import { renderDuration } from '../../../../core/foundation/rate.ts'
import type { ProgressPost, RunMode } from '../../../../core/machine/run.ts'
import type { Hardware } from '../../../../services/host/hardware.ts'
import type { Marks } from '../../../../services/host/marks.ts'
import type { Nvram } from '../../../../services/disk/nvram.ts'
import { createReporter, type Reporter } from '../../../../services/flash/reporter.ts'
import type { ServerClient } from '../../../../services/net/server-client.ts'
import type { Rejection } from '../../../../services/net/server-exchange.ts'
import { settle, untilAborted } from '../../../../services/host/watch.ts'
import {
  endReport,
  milestone,
  nextReport,
  startReport,
  uefiReport,
  type RunFacts,
} from './remote-report.ts'
import { NO_AFTERMATH, type FlashEnd, type FlashOrder, type Hooks } from '../flow/start.ts'

interface HookDependencies {
  /** Null: standalone, so nobody is told. */
  readonly client: ServerClient | null
  readonly nvram: Nvram
  readonly hardware: Hardware
  readonly marks: Marks
  readonly mode: RunMode
  /** Whether the firmware shall boot the flashed disk once. */
  readonly registersBoot: boolean
  /** The disks as the server was told of them. */
  readonly disks: () => readonly InventoryDisk[]
  /** The last lines that the person saw, for the log of a failure. */
  readonly transcript: () => readonly string[]
  readonly signal: AbortSignal
  /** Milliseconds on a steady clock. */
  readonly now: () => number
  readonly times?: Partial<HookTimes>
}

/** Milliseconds. */
export interface HookTimes {
  /** For how long the end is told to a server that does not answer. */
  readonly patience: number
  /** How long a person waits for a failure to be reported; it goes on behind. */
  readonly failure: number
  /** How long a silence lasts before a word is said about it. */
  readonly talk: number
  readonly retry: number
}

const TIMES: HookTimes = { patience: 10 * 60_000, failure: 5000, talk: 2000, retry: 1000 }

/** One flash under way. */
interface RunningFlash {
  readonly facts: RunFacts
  readonly reporter: Reporter | null
  readonly began: number
  /** How far it came, in lines. */
  readonly steps: string[]
  last: ProgressPost
}

export function createHooks(parts: HookDependencies): Required<Hooks> {
  const { client, nvram, marks, signal, now } = parts
  const times = { ...TIMES, ...parts.times }
  let flash: RunningFlash | null = null

  function begin(order: FlashOrder, plan: FlashPlan | null): RunningFlash {
    const disk = parts.disks().find(({ path }) => path === order.disk) ?? null
    const facts: RunFacts = { run: crypto.randomUUID(), mode: parts.mode, order, plan, disk }
    const retryMs = times.retry
    const reporter = client === null ? null : createReporter({ client, signal, now, retryMs })
    return { facts, reporter, began: now(), steps: [], last: startReport(facts) }
  }

  function tell(running: RunningFlash, report: ProgressPost) {
    const passed = milestone(running.last, report, running.facts.plan?.image.sizeBytes ?? null)
    const step = passed ?? (report.phase === running.last.phase ? null : report.phase)
    if (step !== null) {
      void marks.status(step)
      running.steps.push(`${renderDuration((now() - running.began) / 1000)} ${step}`)
    }
    running.last = report
    running.reporter?.tell(report)
  }

  async function bootOnce({ target }: FlashPlan, running: RunningFlash, say: Say): Promise<string> {
    tell(running, uefiReport(running.last))
    const set = await nvram.bootOnce(target)
    const words = set.ok
      ? `UEFI: ${set.value}.`
      : `UEFI: no one-shot boot of ${target.path}: ${set.refusal}.`
    say(words)
    return words
  }

  /** The server's own copy of the run first: what ends the cycle also ends the run. */
  async function tellDone(running: RunningFlash, say: Say): Promise<Rejection | null> {
    if (client === null || running.reporter === null) return null
    const end = now() + times.patience
    const left = () => renderDuration((end - now()) / 1000)
    const isTold = running.reporter.flush(times.patience)
    for (let wait = times.talk; !(await settle(isTold, wait)); wait = times.talk * 15) {
      say(`The server does not answer; trying again, for ${left()} more.`)
    }
    const told = await client.sendDone({
      ms: Math.max(0, end - now()),
      onRetry: ({ reason }) => say(`Not told yet (${reason}); trying again, for ${left()} more.`),
    })
    return told.ok ? null : told.refusal
  }

  async function tellFailure(
    running: RunningFlash,
    reason: string,
    isAsked: boolean,
  ): Promise<void> {
    if (client === null) return
    // The run's own word first: it knows a cancel from a failure.
    await running.reporter?.flush(times.patience)
    if (isAsked) await client.sendFailure(reason, { ms: times.patience })
    await client.sendLog(running.facts.run, await renderLog(parts, running.steps, reason))
  }

  return {
    onFlashStart(order, plan) {
      flash = begin(order, plan)
      flash.reporter?.tell(flash.last)
      void marks.status(`flash of ${order.image.name} to ${order.disk}`)
    },
    onProgress(event) {
      if (flash === null) return
      const report = nextReport(flash.last, event)
      if (report !== null) tell(flash, report)
    },
    async onEnd(end, order, say, enough = NEVER) {
      // A flash that its checks refused is worth telling when nobody is there to see it.
      if (flash === null && !order.unattended) return NO_AFTERMATH
      const running = flash ?? begin(order, null)
      flash = null
      if (end.kind === 'done') {
        const bootEntry = parts.registersBoot ? await bootOnce(end.plan, running, say) : null
        tell(running, endReport(running.facts, running.last, end))
        const telling = tellDone(running, say)
        // Whoever had enough is not held; it goes on behind.
        const no = await untilAborted(enough, telling).catch(() => UNHEARD)
        return { notice: no === null ? null : renderUntold(no), bootEntry }
      }
      tell(running, endReport(running.facts, running.last, end))
      await settle(tellFailure(running, reasonOf(end), order.unattended), times.failure)
      return NO_AFTERMATH
    },
  }
}

type Say = (line: string) => void

const NEVER = new AbortController().signal
const UNHEARD = { reason: 'its answer was not waited for' }

const reasonOf = (end: Exclude<FlashEnd, { kind: 'done' }>) =>
  end.kind === 'cancelled' ? `cancelled: ${end.reason}` : end.reason

const renderUntold = ({ reason }: Pick<Rejection, 'reason'>) =>
  `The disk is flashed, but the server could not be told (${reason}), so it would have this machine flashed again. Reboot when the server is back, or boot the disk by hand.`

/** Enough for anybody; the server keeps the tail of what is longer. */
const MAX_LOG_CHARACTERS = 200_000

async function renderLog(
  { hardware, transcript }: HookDependencies,
  steps: readonly string[],
  reason: string,
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
