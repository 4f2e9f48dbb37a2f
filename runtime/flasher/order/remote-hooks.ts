/** Runs around every flash: reports it to the server, and has the firmware boot the disk once if asked. */
import { LIVE_PATHS } from '#appliance/contract.ts'
import { isBootWanted } from '#engine/disk/rules/boot-entry.ts'
import { parseLoops } from '#engine/disk/rules/disk-uses.ts'
import { parseMac } from '#kit/net/rules/mac.ts'
import { parseServerList } from '#kit/net/rules/host-header.ts'
import { createDisks, type Disks } from '#engine/disk/disks.ts'
import { createHardware, type HardwareReader } from '#engine/inventory/hardware-reader.ts'
import { createMarks, NO_MARKS, type Marks } from '#kit/host/marks.ts'
import { createNvram, type Nvram } from '#engine/disk/nvram.ts'
import { createPower, type Power } from '#flasher/live-system/power.ts'
import type { FirmwareFacts } from '#engine/inventory/rules/firmware-facts.ts'
import type { ServerClient, Rejection, RetryTime } from '#flasher/link/server-client.ts'
import { createShell, type Environment } from '#kit/host/shell.ts'
import {
  NO_HOOKS,
  type Hooks,
  NO_AFTERMATH,
  type FlashChoice,
  type TemplateOffer,
} from './rules/flash-choice.ts'
import type { FlashEvent, FlashPlan } from '#engine/flash/rules/flash-plan.ts'
import type { InventoryDisk } from '#engine/inventory/rules/machine.ts'
import type { RunMode, ProgressPost } from '#engine/inventory/rules/run.ts'
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
  addReport,
  dropReport,
  EMPTY_QUEUE,
  untilDue,
} from '#engine/flash/rules/run-report.ts'
import { printable } from '#kit/foundation/printable.ts'
import { renderDuration } from '#kit/foundation/size.ts'
import { OfferSchema, parseFirstBoot, type FirstBoot } from '#engine/first-boot/rules/seed.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { parsePlan, type FirstBootTicket } from './rules/plan.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import { decideDelay } from '#kit/net/rules/network-failure.ts'

interface RemoteEnvironment extends Pick<RemoteDependencies, 'env' | 'signal' | 'now'> {
  /** As Node names it. */
  readonly arch: string
}

/** `FLASHER_LIVE=1`: console and kernel log may be written to. */
export function createRemoteDependencies({
  arch,
  ...given
}: RemoteEnvironment): RemoteDependencies {
  const { env } = given
  const shell = createShell({ env })
  return {
    ...given,
    loops: parseLoops(env['FLASHER_OFFER_LOOP'] ?? '') !== 'none',
    disks: createDisks({ shell }),
    hardware: createHardware({ shell }),
    nvram: createNvram({ shell, arch }),
    power: createPower({ shell }),
    marks: env['FLASHER_LIVE'] === '1' ? createMarks({ status: LIVE_PATHS.status }) : NO_MARKS,
  }
}

/** The firmware boots the disk once if wanted; the server that booted the machine gets reports. */
export async function createStandaloneHooks(environment: RemoteEnvironment): Promise<Hooks> {
  const { env } = environment
  const registersBoot = isBootWanted(env['FLASHER_REGISTER_UEFI_BOOT'])
  const client = await openClient(environment)
  if (!registersBoot && client === null) return NO_HOOKS
  return createHooks({
    ...createRemoteDependencies(environment),
    client,
    mode: 'interactive',
    registersBoot,
    disks: () => [],
    transcript: () => [],
  })
}

async function openClient({ env, signal }: RemoteEnvironment): Promise<ServerClient | null> {
  const base = env['FLASHER_LIVE_SERVER'] ?? ''
  const mac = parseMac(env['FLASHER_LIVE_MAC'] ?? '')
  if (base === '' || !mac.ok) return null
  const { createServerClient } = await import('#flasher/link/server-client.ts')
  const token = env['FLASHER_PXE_TOKEN'] || null
  const others = parseServerList(env['FLASHER_LIVE_SERVERS'] ?? null)
  // The address that answered when the wizard opened is among `others` as well.
  const rest = others.filter((other) => other !== base)
  return createServerClient({ base, others: rest, mac: mac.value, token, env, signal })
}

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
  onStep?(step: {
    readonly text: string
    /** A share of the bytes; else a phase began. */
    readonly isShare: boolean
  }): void
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
    /** The run's report first: what ends the cycle also ends the run. Null: the server knows. */
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
  /** Never rejects; absent: this machine's. */
  readonly readFirmware?: () => Promise<FirmwareFacts | null>
  readonly times?: Partial<RemoteTimes>
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
  say: (line: string) => void,
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

const NEVER = new AbortController().signal
const NOT_WAITED_FOR = { reason: 'you did not wait for its answer' }

const renderSilence = (time: string) =>
  `The server does not answer; trying again, for ${time} more.`

const renderRetry = (reason: string, time: string) =>
  `Not reported yet (${reason}); trying again, for ${time} more.`

const renderUnreported = ({ reason }: Pick<Rejection, 'reason'>) =>
  `The disk is flashed, but the server could not be notified (${reason}), so it would flash this machine again. Reboot when the server is back, or boot the disk by hand.`

// Fetches the first-boot configuration of a flash, a plan's or a person's, before anything is written.

const UNREADABLE = 'it cannot be read'

/** Null: the machine has none. */
async function findTemplate(client: ServerClient | null): Promise<TemplateOffer | null> {
  const offered = client === null ? null : await client.offerFirstBoot()
  if (client === null || offered === null) return null
  if (!offered.ok) {
    // A server without that route or template.
    if (offered.refusal.status === 404 || offered.refusal.status === 405) return null
    return {
      kind: 'unavailable',
      reason: `No first-boot template: ${trim(offered.refusal)}.`,
    }
  }
  const parsed = OfferSchema.safeParse(offered.value)
  if (!parsed.success) {
    return { kind: 'unavailable', reason: `No first-boot template: ${UNREADABLE}.` }
  }
  const { template: name, token } = parsed.data
  return { kind: 'template', name, fetch: () => fetchChosen(client, token) }
}

const trim = ({ reason }: Rejection) => reason.replace(/\.$/, '')

const fetchChosen = (client: ServerClient, token: string) =>
  fetchExchanging(token, client.fetchFirstBoot, async () => {
    const offered = await client.offerFirstBoot()
    const parsed = OfferSchema.safeParse(offered.ok ? offered.value : null)
    return parsed.success ? parsed.data.token : null
  })

interface PlanLink {
  readonly client: ServerClient
  readonly retryTime: () => RetryTime
}

/** Null: the plan names none; refused in words. */
export async function fetchFirstBoot(
  ticket: FirstBootTicket | null,
  link: PlanLink,
): Promise<Result<FirstBoot | null, string>> {
  if (ticket === null) return accept(null)
  return await fetchExchanging(
    ticket,
    (one) => askWith(one, link),
    () => renewTicket(link),
  )
}

/** Asks only servers that may have given the plan, as they get the boot token. */
async function askWith(
  { url, token }: FirstBootTicket,
  { client, retryTime }: PlanLink,
): Promise<Result<unknown, Rejection>> {
  const origin = URL.parse(url)?.origin
  const isHere = client.servers.some((server) => URL.parse(server)?.origin === origin)
  if (isHere) return await client.fetchFirstBoot(token, retryTime())
  return refuse({
    reason: 'its first-boot configuration has no address on this server, or no token',
    status: null,
    isPassing: false,
    waitMs: null,
  })
}

/** A token is good for one answer: a new plan brings another. */
async function renewTicket({ client, retryTime }: PlanLink): Promise<FirstBootTicket | null> {
  const got = await client.fetchPlan(retryTime())
  const plan = got.ok ? parsePlan(got.value) : null
  return plan?.ok === true && plan.value.mode === 'flash' ? plan.value.firstBoot : null
}

/** Exchanges a ticket once if it is too old or its answer was lost. `renew` null: no other. */
async function fetchExchanging<Ticket>(
  ticket: Ticket,
  ask: (ticket: Ticket) => Promise<Result<unknown, Rejection>>,
  renew: () => Promise<Ticket | null>,
): Promise<Result<FirstBoot, string>> {
  const first = await ask(ticket)
  const other = first.ok || first.refusal.status !== 401 ? null : await renew()
  return judgeFirstBoot(other === null ? first : await ask(other))
}

function judgeFirstBoot(answer: Result<unknown, Rejection>): Result<FirstBoot, string> {
  const parsed = answer.ok ? parseFirstBoot(answer.value) : null
  if (parsed?.ok === true) return parsed
  const reason = answer.ok ? UNREADABLE : answer.refusal.reason
  return refuse(`The server did not provide the first-boot configuration: ${reason}.`)
}

// Posts a flash's progress to the server without slowing it: newest first, retried, and always the end.

const RETRY_MS = 1000

export function createReporter(options: {
  readonly client: Pick<ServerClient, 'sendProgress'>
  readonly signal: AbortSignal
  /** Milliseconds. */
  readonly retryMs?: number
  /** Milliseconds on a steady clock. */
  readonly now: () => number
}) {
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
