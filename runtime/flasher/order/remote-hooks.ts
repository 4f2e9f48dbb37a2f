/** Runs around every flash: reports it to the server, and has the firmware boot the disk once if asked. */
import type { FlashPlan } from '#engine/flash/rules/flash.ts'
import type { InventoryDisk } from '#engine/inventory/rules/machine.ts'
import { fill } from '#kit/texts/text.ts'
import { WIZARD_TEXTS } from '#flasher/texts/texts.ts'
import type { RunMode } from '#engine/inventory/rules/run.ts'
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
import { reportPhase } from '#engine/flash/rules/run-report.ts'
import { findTemplate } from './first-boot-fetcher.ts'
import { NO_AFTERMATH, type Hooks } from './rules/wizard-start.ts'
import type { FlashChoice } from './rules/flash-choice.ts'
import {
  createFlashRun,
  REPORT_TIMES,
  type ReportedFlash,
  type ReportTimes,
} from './run-reporter.ts'

const TEXTS = WIZARD_TEXTS.report

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
        void marks.status(fill(WIZARD_TEXTS.driven.statusFlash, { image: image.name, disk }))
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
    ? fill(TEXTS.bootSet, { outcome: set.value })
    : fill(TEXTS.bootNotSet, { disk: target.path, reason: set.refusal })
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
const NOT_WAITED_FOR = { reason: TEXTS.notWaitedFor }

const renderUnreported = ({ reason }: Pick<Rejection, 'reason'>) =>
  fill(TEXTS.notReported, { reason })
