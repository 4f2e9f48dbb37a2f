/** Carries out what the server ordered: a flash, its provisioning, the report, a restart; else a person is asked. */
import { CONSOLE_PATHS } from '#fleet/boot/rules/live-boot.ts'
import { offerDisk } from '#flasher/text/rules/disk-offer.ts'
import type { FlashPlan } from '#engine/flash/rules/flash-plan.ts'
import type { FlashOutcome, ReportedEnd } from '#engine/flash/rules/run-report.ts'
import { renderError } from '#kit/foundation/fault.ts'
import { printable } from '#kit/foundation/printable.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { createMarks, type Marks } from '#kit/host/marks.ts'
import { settle } from '#kit/host/watch.ts'
import {
  fetchProvision,
  createServerClient,
  type ServerClient,
  searchServer,
} from '#flasher/link/server-client.ts'
import {
  askPerson,
  decideInvocation,
  findReporting,
  renderTuiArgs,
  provisioningFor,
  type LiveInvocation,
  type KernelOrder,
} from './rules/kernel-order.ts'
import { orderFor, type FlashChoice } from './rules/flash-choice.ts'
import { createFlashRun, REPORT_TIMES, type ReportedFlash } from './remote-hooks.ts'
import { createDisks, settleFirstDevices } from '#engine/disk/disks.ts'
import { createPower } from '#flasher/live-system/power.ts'
import { createShell, type Environment } from '#kit/host/shell.ts'
import type { LiveConsole } from '#flasher/live-system/live-console.ts'
import type { Output } from '#kit/terminal/text/terminal-style.ts'

interface Session {
  readonly order: KernelOrder
  readonly console: EarlierConsole
  readonly services: LiveServices
  readonly marks: Marks
  /** Null: no server is known, and nothing is sent. */
  readonly client: ServerClient | null
  /** Aborted a little after the program, so that a cancelled flash is reported, too. */
  readonly reporting: AbortSignal
  /** On this screen and the other consoles. */
  say(line: string): void
}

/** How long a silent server is looked for. */
const SEARCH_MS = 30_000
const LAST_REPORTS_MS = 3000

/** Never throws, as nobody may watch the machine. Returns the exit code. */
export async function carryOut(given: KernelOrder, console: EarlierConsole): Promise<number> {
  const session = await openSession(given, console)
  if (!session.ok) return await refuseOrder(session.refusal.session, session.refusal.reason)
  try {
    return await follow(session.value)
  } catch (thrown) {
    return await refuseOrder(session.value, `${renderError(thrown)}.`)
  }
}

async function openSession(
  given: KernelOrder,
  console: EarlierConsole,
): Promise<Result<Session, { readonly session: Session; readonly reason: string }>> {
  const { env, signal, stdout } = console
  const marks = createMarks({ ...CONSOLE_PATHS, ...console.paths })
  const say = (line: string) => {
    stdout.write(`${printable(line)}\n`)
    void marks.status(line)
  }
  const services = console.services ?? createLiveServices(env)
  const reporting = outlive(signal, LAST_REPORTS_MS)
  const parts = { console, services, marks, reporting, say }
  const link = findReporting(given)
  const silent = { ...parts, order: given, client: null }
  // What is wrong with the order is reported when it is decided.
  if (link === null) return accept(silent)
  const onWait = () => say(`Looking for the server at ${link.bases.join(' and ')} ...`)
  const base = await searchServer(link.bases, { env, signal, ms: SEARCH_MS, onWait })
  if (base === null) {
    const reason = `The server does not answer at ${link.bases.join(' or ')}.`
    return refuse({ session: silent, reason })
  }
  const { mac } = link
  const client = createServerClient({ base, mac, token: given.token, env, signal: reporting })
  return accept({ ...parts, order: { ...given, server: base }, client })
}

function outlive(signal: AbortSignal, milliseconds: number): AbortSignal {
  const ending = new AbortController()
  const end = () => setTimeout(() => ending.abort(), milliseconds).unref()
  signal.addEventListener('abort', end, { once: true })
  return ending.signal
}

async function follow(session: Session): Promise<number> {
  const { order, services, say } = session
  const [disks, hasCijoe] = await Promise.all([services.listDisks(), services.hasCijoe()])
  const offers = disks.map((disk) => offerDisk(disk, null))
  const invocation = decideInvocation(order, { disks: offers, hasCijoe })
  if (invocation.kind === 'tui') return await ask(session, invocation)
  const flashed = await flash(session, invocation)
  if (!flashed.ok) return await refuseOrder(session, flashed.refusal)
  // Deployed servers of this line take no run.
  const rejection = await flashed.value.sendDone(say, false)
  if (rejection !== null) return await askUnsent(session, rejection.reason)
  return await restart(session)
}

/** Refused with the reason of the failure. */
async function flash(
  session: Session,
  invocation: Extract<LiveInvocation, { kind: 'flash' }>,
): Promise<Result<ReportedFlash, string>> {
  const { order, console, marks, say } = session
  const { env, signal } = console
  const { choice, provisioning } = invocation
  const folder = await fetchProvision(invocation.fetched, { token: order.token, env, signal })
  if (!folder.ok) return refuse(`The provisioning files cannot be fetched: ${folder.refusal}.`)
  await using files = folder.value
  await marks.mark('auto-flash starting')
  say(`Flashing ${choice.image.location} to ${choice.disk} ...`)
  let run: ReportedFlash | null = null
  const begin = (plan: FlashPlan | null) => (run ??= openRun(session, choice, plan))
  const { createOutput } = await import('#flasher/commands/session.ts')
  const { flashOrder } = await import('#flasher/commands/flash.ts')
  // All output is for the person at this console.
  const { stderr, isRoot, now } = console
  const environment = { env, signal, isRoot, now, stdout: stderr, stderr }
  const speaker = { program: 'flasher', words: ['flash'], json: false, progress: 'text' } as const
  const request = {
    ...orderFor([choice]),
    provisioning: provisioningFor(provisioning, files.paths),
    dryRun: false,
  }
  const { ends } = await flashOrder(request, {
    ...createOutput(speaker, environment),
    environment,
    onEvent: (event, plan) => begin(plan).follow(event),
  })
  const end = summarise(ends)
  const reported = begin(null)
  reported.end(end)
  if (end.kind === 'done') return accept(reported)
  await reported.flush(reported.times.failure)
  return refuse(renderFailure(end.reason))
}

/** `plan` null: the checks refused the flash, which is reported, too. */
function openRun(
  { client, reporting: signal, say }: Session,
  choice: FlashChoice,
  plan: FlashPlan | null,
): ReportedFlash {
  return createFlashRun(
    { mode: 'flash', choice, plan, disk: null },
    {
      client,
      signal,
      now: () => performance.now(),
      onStep: ({ text, isShare }) => (isShare ? say(text) : undefined),
    },
  )
}

/** With the hint of a failure. */
function summarise([end]: readonly FlashOutcome[]): ReportedEnd {
  if (end === undefined) return { kind: 'failed', reason: 'nothing was flashed' }
  if (end.kind === 'done') return end
  const { kind, reason, hint } = end
  const whole = hint === null ? reason : `${reason.replace(/\.$/, '')}. ${hint}`
  return { kind, reason: printable(whole) }
}

const renderFailure = (reason: string) => `The flash failed: ${reason.replace(/\.$/, '')}.`

const refuseOrder = (session: Session, refusal: string): Promise<number> =>
  ask(session, askPerson(session.order, refusal))

/** The server learns why its order was not carried out. */
async function ask(
  { console, marks, client }: Session,
  { argv, reason, refusal }: Extract<LiveInvocation, { kind: 'tui' }>,
): Promise<number> {
  if (reason !== null) void marks.status(reason)
  if (refusal !== null && client !== null) {
    // Best effort: servers of earlier releases refuse it.
    const { failure: ms } = REPORT_TIMES
    await settle(client.sendFailure(refusal, { ms }), ms)
  }
  return await console.tui(argv, { reason })
}

/** Only the server does not know yet that the flash is done. */
async function askUnsent({ order, console, marks }: Session, unsent: string): Promise<number> {
  const reason = `The disk is flashed, but the server could not be notified: ${unsent}.`
  void marks.status(reason)
  return await console.tui(renderTuiArgs(order), { reason, unsent })
}

async function restart({ order, console, services, marks, say }: Session): Promise<number> {
  await marks.mark('flash complete; rebooting')
  say('The server was notified. Restarting ...')
  const restarted = await services.reboot()
  if (restarted.ok) return 0
  const reason = `The disk is flashed, but this machine cannot restart: ${restarted.refusal}.`
  return await console.tui(renderTuiArgs(order), { reason })
}

// One console of a live system that a server of this line booted: its programs, and what is asked of the machine.

interface TuiOpening {
  /** Why a person is asked; null: that was ordered. */
  readonly reason: string | null
  /** Why the server was not notified of the finished flash. */
  readonly unsent?: string
}

export interface EarlierConsole extends LiveConsole {
  readonly stderr: Output
  readonly isRoot: boolean
  /** Seconds on a steady clock. */
  readonly now: () => number
  /** Returns the exit code of `flasher-tui`. */
  tui(argv: readonly string[], opening: TuiOpening): Promise<number>
  /** Absent: those of this machine. */
  readonly services?: LiveServices
}

type LiveServices = ReturnType<typeof createLiveServices>

/** A device that hangs must not keep a machine here. */
const SETTLE_SECONDS = 60

function createLiveServices(env: Environment) {
  const shell = createShell({ env })
  return {
    async listDisks() {
      // The only disk so far may not be the only one.
      await settleFirstDevices(shell, { seconds: SETTLE_SECONDS }).catch(() => null)
      return await createDisks({ shell }).survey()
    },
    hasCijoe: () => shell.has('cijoe'),
    reboot: () => createPower({ shell }).reboot(),
  }
}
