/** Carries out what the server ordered: a flash, its provisioning, the report, a restart; else a person is asked. */
import { CONSOLE_PATHS } from '../../fleet/boot/rules/live-console.ts'
import { offerDisk } from '../text/rules/disk-offer.ts'
import type { FlashOutcome } from '../../engine/flash/rules/outcome.ts'
import type { ReportedEnd } from '../../engine/flash/rules/run-report.ts'
import { renderError } from '../../kit/foundation/fault.ts'
import { printable } from '../../kit/foundation/printable.ts'
import { accept, refuse, type Result } from '../../kit/foundation/result.ts'
import { createMarks, type Marks } from '../../kit/host/marks.ts'
import { linger } from '../../kit/host/watch.ts'
import { fetchProvision } from '../link/provision-fetcher.ts'
import { createServerClient, findServer } from '../link/server-client.ts'
import {
  askPerson,
  decideInvocation,
  findReporting,
  orderFor,
  renderTuiArgs,
  type LiveInvocation,
  type LiveOrder,
} from './rules/live-invocation.ts'
import { createFlashReport, type FlashReport } from './flash-report.ts'
import type { EarlierConsole } from './order-console.ts'
import { createLiveServices, type LiveServices } from './live-services.ts'

type Flash = Extract<LiveInvocation, { kind: 'flash' }>

/** One order, on the console that carries it out. */
interface Session {
  readonly order: LiveOrder
  readonly console: EarlierConsole
  readonly services: LiveServices
  readonly marks: Marks
  readonly report: FlashReport
  /** On the screen, and for the other consoles. */
  say(line: string): void
}

/** How long a server is looked for that does not answer yet. */
const SEARCH_MS = 30_000
const TRY_MS = 1000
const LAST_REPORTS_MS = 3000

/** Never throws: a machine that nobody watches must not stop at an error. Returns the exit code. */
export async function carryOut(given: LiveOrder, console: EarlierConsole): Promise<number> {
  const session = await openSession(given, console)
  if (!session.ok) return await refuseOrder(session.refusal.session, session.refusal.reason)
  try {
    return await follow(session.value)
  } catch (thrown) {
    return await refuseOrder(session.value, `${renderError(thrown)}.`)
  }
}

async function openSession(
  given: LiveOrder,
  console: EarlierConsole,
): Promise<Result<Session, { readonly session: Session; readonly reason: string }>> {
  const { env, signal, stdout } = console
  const marks = createMarks({ ...CONSOLE_PATHS, ...console.paths })
  const say = (line: string) => {
    stdout.write(`${printable(line)}\n`)
    void marks.status(line)
  }
  const services = console.services ?? createLiveServices(env)
  const parts = { console, services, marks, say }
  const link = findReporting(given)
  const silent = { ...parts, order: given, report: createFlashReport(null, signal, say) }
  // What is wrong with the order is said when it is decided.
  if (link === null) return accept(silent)
  const base = await search(link.bases, console, say)
  if (base === null) {
    const reason = `The server does not answer at ${link.bases.join(' or ')}.`
    return refuse({ session: silent, reason })
  }
  const reporting = outlive(signal, LAST_REPORTS_MS)
  const { mac } = link
  const client = createServerClient({ base, mac, token: given.token, env, signal: reporting })
  const order = { ...given, server: base }
  return accept({ ...parts, order, report: createFlashReport(client, reporting, say) })
}

/** A flash that is cancelled is reported, too. */
function outlive(signal: AbortSignal, milliseconds: number): AbortSignal {
  const ending = new AbortController()
  const end = () => setTimeout(() => ending.abort(), milliseconds).unref()
  signal.addEventListener('abort', end, { once: true })
  return ending.signal
}

/** The first of the addresses that answers; null: none did in time. */
async function search(
  bases: readonly string[],
  { env, signal }: EarlierConsole,
  say: Session['say'],
): Promise<string | null> {
  const deadline = performance.now() + SEARCH_MS
  for (let tries = 1; ; tries += 1) {
    const found = await findServer(bases, { env, signal })
    if (found !== null || signal.aborted || performance.now() + TRY_MS > deadline) return found
    if (tries === 1) say(`Looking for the server at ${bases.join(' and ')} ...`)
    await linger(TRY_MS, signal)
  }
}

async function follow(session: Session): Promise<number> {
  const { order, services, report } = session
  const [disks, hasCijoe] = await Promise.all([services.listDisks(), services.hasCijoe()])
  const offers = disks.map((disk) => offerDisk(disk, null))
  const invocation = decideInvocation(order, { disks: offers, hasCijoe })
  if (invocation.kind === 'tui') return await ask(session, invocation)
  const failure = await flash(session, invocation)
  if (failure !== null) return await refuseOrder(session, failure)
  const unsent = await report.sendDone()
  if (unsent !== null) return await askUnsent(session, unsent)
  return await restart(session)
}

/** Null: it is done. Otherwise why not. */
async function flash(
  { order, console, marks, report, say }: Session,
  invocation: Flash,
): Promise<string | null> {
  const { env, signal } = console
  const { image, target } = invocation
  const folder = await fetchProvision(invocation.fetched, { token: order.token, env, signal })
  if (!folder.ok) return `The provisioning files cannot be fetched: ${folder.refusal}.`
  await using files = folder.value
  await marks.mark('auto-flash starting')
  say(`Flashing ${image} to ${target} ...`)
  report.begin({ image, target })
  const { createOutput } = await import('../commands/session.ts')
  const { flashOrder } = await import('../commands/flash.ts')
  // Nobody reads a document here: all that is said is for the person at this console.
  const { stderr, isRoot, now } = console
  const environment = { env, signal, isRoot, now, stdout: stderr, stderr }
  const speaker = { program: 'flasher', words: ['flash'], json: false, progress: 'text' } as const
  const { ends } = await flashOrder(
    { ...orderFor(invocation, files.paths), dryRun: false },
    { ...createOutput(speaker, environment), environment, onEvent: report.follow },
  )
  const end = summarise(ends)
  await report.end(end)
  return end.kind === 'done' ? null : renderFailure(end.reason)
}

/** As the server learns it: the hint of a failure is part of its reason. */
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

/** A person, at this console; the server learns why its order was not carried out. */
async function ask(
  { console, marks, report }: Session,
  { argv, reason, refusal }: Extract<LiveInvocation, { kind: 'tui' }>,
): Promise<number> {
  if (reason !== null) void marks.status(reason)
  if (refusal !== null) await report.sendFailure(refusal)
  return await console.tui(argv, { reason })
}

/** The flash is done, whatever the mode: all that is missing is that the server knows. */
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
