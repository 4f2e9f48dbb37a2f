/** Server-driven mode: posts the disks, fetches the plan and carries it out ("Server-driven mode"). */
import { isBootWanted } from '#engine/disk/rules/boot-entry.ts'
import { parseMac, type Mac } from '#kit/net/rules/mac.ts'
import type { InventoryDisk } from '#engine/inventory/rules/machine.ts'
import { printable } from '#kit/foundation/printable.ts'
import { refuse, type Result, accept } from '#kit/foundation/result.ts'
import { parseServerAddress } from '#kit/net/rules/host-header.ts'
import { renderDiskSize } from '#kit/foundation/size.ts'
import { linger, settle } from '#kit/host/watch.ts'
import {
  createHooks,
  type RemoteDependencies,
  fetchFirstBoot,
  decideTimes,
} from './remote-hooks.ts'
import {
  findDisk,
  findRenewed,
  parsePlan,
  type Order,
  type CaptureByPlan,
  type NamedFlash,
} from './rules/plan.ts'
import { describeFailure, type FlashFailure } from '#engine/flash/rules/run-report.ts'
import { Fault, renderError } from '#kit/foundation/fault.ts'
import {
  chooseOrdered,
  type Hooks,
  type MachineIdentity,
  type RemoteOutcome,
  type DrivenScreen,
  chooseDisk,
  type DiskChoice,
} from './rules/flash-choice.ts'
import { type SurveyedDisk, listInventory } from '#engine/disk/rules/disk.ts'
import { readPathNames } from '#engine/disk/sticks.ts'
import {
  createServerClient,
  type RetryTime,
  type ServerClient,
  type Rejection,
  searchServer,
} from '#flasher/link/server-client.ts'
import type { Environment } from '#kit/host/shell.ts'
import { readAuthorities } from '#kit/net/http-client.ts'
import { readFirmware } from '#engine/bootable/firmware.ts'
import type { FirmwareFacts } from '#engine/inventory/rules/firmware-facts.ts'

/**
 * Never throws: any failure opens a wizard with the reason, as an unattended machine must neither
 * stop at an error nor try for ever.
 */
export async function drive(
  screen: DrivenScreen,
  request: {
    readonly server: string
    /** Asked when it does not answer; invalid addresses are skipped. */
    readonly others?: readonly string[]
    /** In any spelling. */
    readonly mac: string
  },
  given: RemoteDependencies,
): Promise<RemoteOutcome> {
  const bases = parseServerAddress(request.server)
  const mac = parseMac(request.mac.trim())
  const base = bases.ok ? (bases.value.at(-1) ?? null) : null
  const identity = { ...screen.identity, server: base }
  let session: DrivenSession = { screen, given, identity, machine: null }
  if (!bases.ok) return open(session, `${quote(request.server)} is not the address of a server.`)
  if (!mac.ok) return open(session, `${quote(request.mac)} is not a MAC address.`)
  try {
    const servers = { bases: bases.value, others: listAddresses(request.others ?? []) }
    const found = await openRemoteMachine({ ...servers, mac: mac.value, screen, given })
    if (!found.ok) return open(session, found.refusal)
    const machine = found.value
    const known = { ...identity, mac: mac.value, server: machine.client.base }
    const following = { ...session, identity: known, machine }
    session = following
    return await follow(following)
  } catch (thrown) {
    return open(session, `This machine cannot follow the server: ${renderError(thrown)}`)
  }
}

const listAddresses = (servers: readonly string[]): readonly string[] =>
  servers.flatMap((server) => {
    const bases = parseServerAddress(server)
    return bases.ok ? bases.value : []
  })

const quote = (text: string) => JSON.stringify(printable(text.slice(0, 100)))

interface DrivenSession {
  readonly screen: DrivenScreen
  readonly given: RemoteDependencies
  readonly identity: MachineIdentity
  /** Null: the server was not found. */
  readonly machine: RemoteMachine | null
}

interface Following extends DrivenSession {
  readonly machine: RemoteMachine
}

async function follow(session: Following, plans = 0): Promise<RemoteOutcome> {
  const { machine } = session
  const got = await machine.client.fetchPlan(machine.retryTime())
  void machine.sendHardware()
  if (!got.ok) return open(session, `The server sent no plan: ${got.refusal.reason}.`)
  const plan = parsePlan(got.value)
  if (!plan.ok)
    return open(session, `The plan from the server cannot be followed: ${plan.refusal}.`)
  // The request for the plan made this machine known.
  if (!machine.isListed() && machine.disks().length > 0) await machine.sendDisks({ ms: 0 })
  return await act(plan.value, session, plans + 1)
}

/** Tries with an outdated plan. */
const MAX_PLANS = 4
const ASK_AGAIN_MS = 1000

async function act(
  plan: Order<NamedFlash>,
  session: Following,
  plans: number,
): Promise<RemoteOutcome> {
  switch (plan.mode) {
    case 'flash':
      return (await isOutdated(plan, session, plans))
        ? follow(session, plans)
        : flash(plan, session)
    case 'capture':
      return capture(plan, session)
    case 'interactive':
      return open(session, plan.reason, plan.catalog)
    case 'inventory':
      return leaveInventory(session)
    case 'exit':
      return exit(plan.reason, session)
  }
}

function open(
  session: DrivenSession,
  notice: string | null,
  catalog: string | null = null,
): RemoteOutcome {
  const { given, machine } = session
  const server = machine?.client.base ?? session.identity.server
  const identity = { ...session.identity, server }
  if (notice !== null) void given.marks.status(`wizard: ${notice}`)
  return {
    kind: 'interactive',
    start: {
      screen: 'image',
      catalog: catalog ?? (server === null ? null : `${server}/catalog.toml`),
      notice,
      identity,
    },
    hooks: hooksFor(session, 'interactive'),
  }
}

/** `registersBoot`: the plan asks for a boot entry, as the environment may. */
function hooksFor(
  { machine, given }: DrivenSession,
  mode: 'flash' | 'interactive',
  registersBoot = false,
): Hooks {
  return createHooks({
    ...given,
    client: machine?.client ?? null,
    mode,
    registersBoot: registersBoot || isBootWanted(given.env['FLASHER_REGISTER_UEFI_BOOT']),
    disks: machine?.disks ?? none,
    transcript: machine?.transcript ?? none,
  })
}

const none = () => []

async function exit(reason: string | null, { machine }: Following): Promise<RemoteOutcome> {
  machine.say(reason ?? 'The server has nothing to do for this machine.')
  machine.say('The machine continues with its own disk.')
  await settle(machine.sendHardware(), LAST_REPORTS_MS)
  return { kind: 'exit', code: 0 }
}

async function leaveInventory(session: Following): Promise<RemoteOutcome> {
  const { machine } = session
  const rejection = machine.isListed() ? null : await machine.sendDisks(machine.retryTime())
  if (rejection !== null) {
    return open(session, `The server refused the list of disks: ${rejection.reason}.`)
  }
  const count = machine.disks().length
  const disks = count === 1 ? 'disk' : 'disks'
  machine.say(`The server has the list of ${count} ${disks}; reading the hardware…`)
  // lshw ends by its own limit.
  await machine.sendHardware()
  return await restart(session, 'inventory posted; rebooting')
}

/** The wait for pending reports before the machine leaves. */
const LAST_REPORTS_MS = 2000

async function restart(session: Following, mark: string): Promise<RemoteOutcome> {
  const { machine, given } = session
  await settle(machine.sendHardware(), LAST_REPORTS_MS)
  await given.marks.mark(mark)
  machine.say('Rebooting…')
  const gone = await given.power.reboot()
  if (gone.ok) return { kind: 'exit', code: 0 }
  return open(session, `This machine cannot be restarted (${gone.refusal}). Restart it by hand.`)
}

async function isOutdated(plan: NamedFlash, session: Following, plans: number): Promise<boolean> {
  const { machine, given } = session
  if (plan.sha256 === null || plans >= MAX_PLANS) return false
  if (!(await isReplaced(plan, given))) return false
  machine.say('The image was replaced since the plan was made; asking for the plan again…')
  await linger(ASK_AGAIN_MS, given.signal)
  return true
}

/** A longer check is left to the flash, which reports what is wrong. */
const LONGEST_MS = 10_000

/** Whether its server has replaced the image since the plan; false: unknown. */
async function isReplaced(
  { image, sha256 }: NamedFlash,
  { env, signal: ending }: RemoteDependencies,
): Promise<boolean> {
  const { createSources } = await import('#engine/image/sources/sources.ts')
  const signal = AbortSignal.any([ending, AbortSignal.timeout(LONGEST_MS)])
  try {
    await using source = await createSources({ env }).open(image, { signal })
    return (source.sha256 ?? source.servedSha256 ?? sha256) !== sha256
  } catch {
    return false
  }
}

async function flash(plan: NamedFlash, session: Following): Promise<RemoteOutcome> {
  const { machine, screen, given } = session
  const renewSource = (location: string) => renewAddress(plan, machine, location)
  const hooks = { ...hooksFor(session, 'flash', plan.registerUefiBoot), renewSource }
  const disk = await findAgain(plan, machine)
  if (!disk.ok) return await giveUp(plan, session, hooks, disk.refusal)
  const firstBoot = await fetchFirstBoot(plan.firstBoot, machine)
  if (!firstBoot.ok) return await giveUp(plan, session, hooks, firstBoot.refusal)
  await given.marks.mark('auto-flash starting')
  const { path } = disk.value
  const chosen = chooseOrdered(plan, machine.choose(path) ?? { path })
  const choice = { ...chosen, firstBoot: firstBoot.value }
  machine.say(
    `Flashing ${choice.image.name} to ${renderDisk(disk.value)}, as the server requested.`,
  )
  const { end, notice } = await screen.runFlash(choice, hooks)
  if (end.kind !== 'done') return open(session, renderFailure(end))
  if (notice !== null) return open(session, notice)
  return await restart(session, 'flash complete; rebooting')
}

/** After a longer absence the other sources are used. */
const RENEWAL_MS = 5000

/** The signature of an address has expired: a new plan has a new one. */
async function renewAddress(
  plan: NamedFlash,
  { client }: RemoteMachine,
  location: string,
): Promise<string | null> {
  const got = await client.fetchPlan({ ms: RENEWAL_MS })
  const newer = got.ok ? parsePlan(got.value) : got
  return newer.ok ? findRenewed(plan, newer.value, location) : null
}

async function capture(plan: CaptureByPlan, session: Following): Promise<RemoteOutcome> {
  const { machine, given } = session
  const disk = await findAgain(plan, machine)
  const shown = disk.ok ? renderDisk(disk.value) : plan.disk
  const { captureDisk } = await import('./remote-capture.ts')
  machine.say(
    `Capturing ${printable(shown)} into ${printable(plan.name)}, as the server requested.`,
  )
  await given.marks.mark('capture starting')
  const captured = await captureDisk({ plan, machine, given, disk })
  if (captured.ok) return await restart(session, 'capture complete; rebooting')
  const reason = captured.refusal.replace(/\.$/, '')
  return open(session, `The capture that the server requested failed: ${reason}.`)
}

/** Before anything was written: reports why, and a person may go on. */
async function giveUp(
  plan: NamedFlash,
  session: Following,
  hooks: Hooks,
  reason: string,
): Promise<RemoteOutcome> {
  const refused = new Fault('plan-refused', reason)
  const end = describeFailure(refused, { target: plan.disk, stage: 'checking', isAborted: false })
  await hooks.onEnd(end, chooseOrdered(plan, { path: plan.disk }), session.machine.say)
  return open(session, renderFailure(end))
}

/** Right before the write: another disk may have come under the same name. */
async function findAgain(
  plan: Pick<NamedFlash, 'disk' | 'seen'>,
  machine: RemoteMachine,
): Promise<Result<InventoryDisk, string>> {
  try {
    return findDisk(await machine.readDisks(), plan.disk, plan.seen ?? null)
  } catch (thrown) {
    return refuse(`The disks of this machine cannot be listed: ${renderError(thrown)}`)
  }
}

function renderDisk({ path, size, size_bytes: bytes, model, serial }: InventoryDisk): string {
  // `size` is lsblk's.
  const shown = bytes === undefined || bytes === null ? size : renderDiskSize(bytes)
  return printable([path, shown, model, serial].filter((part) => part !== null).join(', '))
}

function renderFailure({ kind, reason, leaves, hint }: FlashFailure): string {
  const what =
    kind === 'cancelled'
      ? 'The flash that the server requested was cancelled.'
      : `The flash that the server requested failed: ${reason.replace(/\.$/, '')}.`
  return [what, leaves, hint].filter((part) => part !== null && part !== '').join(' ')
}

type RemoteMachine = ReturnType<typeof createRemoteMachine>

const MAX_LINES = 400

interface RemoteMachineOptions {
  /** Candidates for the first server, the best first. */
  readonly bases: readonly string[]
  readonly others: readonly string[]
  readonly mac: Mac
  readonly screen: DrivenScreen
  readonly given: RemoteDependencies
}

/** Later failures surface where their result is needed. */
async function openRemoteMachine(
  options: RemoteMachineOptions,
): Promise<Result<RemoteMachine, string>> {
  const { bases, others, mac, given } = options
  const { env, signal, now } = given
  const times = decideTimes(given)
  const log = createTranscript(options)
  let deadline = now() + times.contact
  // In the background: posted once it is read and the server is known.
  const { hardware } = given
  const tree = hardware.readTree().catch(() => null)
  const bmcAddress = hardware.readBmcAddress().catch(() => null)
  // The boot of another system is no part of a flash.
  const tellsTimes = env['FLASHER_LIVE'] === '1'
  const bootTimes = async () => (tellsTimes ? hardware.readBootTimes() : '')
  // Read now, so that the request for the plan does not wait for it.
  void bootTimes()
  if ([...bases, ...others].some((base) => base.startsWith('https:'))) await readAuthorities(env)
  const onWait = createWaitHint(env, log.say)
  const base = await find(options, { ...log, onWait }, deadline)
  if (base === null) {
    const addresses = [...bases, ...others].join(' or ')
    return refuse(`No machine server answers at ${addresses}.`)
  }
  const client = createServerClient({
    base,
    others: listRest(options, base),
    mac,
    token: env['FLASHER_PXE_TOKEN'] || null,
    env,
    signal,
    bootTimes,
    retryMs: times.retry,
    onMove: (from, to) => log.say(`${from} does not answer; trying ${to}.`),
    // The limit is for silence: any answer renews it.
    onAnswer: () => (deadline = now() + times.contact),
  })
  const left = () => deadline - now()
  const read = { given, tree, bmcAddress }
  const machine = createRemoteMachine({ ...read, client, log: { ...log, onWait }, left })
  await sendFirst(machine)
  return accept(machine)
}

/** Without the first server's other candidates. */
const listRest = (
  { bases, others }: Pick<RemoteMachineOptions, 'bases' | 'others'>,
  base: string,
): readonly string[] =>
  others.includes(base)
    ? [...others.filter((other) => other !== base), ...bases]
    : others.filter((other) => !bases.includes(other))

function createTranscript({ screen, given }: RemoteMachineOptions) {
  const lines: string[] = []
  return {
    lines,
    say(line: string) {
      lines.push(line)
      if (lines.length > MAX_LINES) lines.shift()
      void given.marks.status(line)
      screen.say(line)
    },
  }
}

/** In the live system the wait is long: the console says once how to end it. */
function createWaitHint(env: Environment, say: (line: string) => void) {
  let isSaid = env['FLASHER_LIVE'] !== '1'
  return () => {
    if (!isSaid) say('Press Ctrl-C to stop waiting and open the wizard.')
    isSaid = true
  }
}

interface ContactLog extends ReturnType<typeof createTranscript> {
  onWait(): void
}

function createRemoteMachine({
  given,
  client,
  log,
  left,
  tree,
  bmcAddress,
}: {
  readonly given: RemoteDependencies
  readonly client: ServerClient
  readonly log: ContactLog
  /** Milliseconds. */
  readonly left: () => number
  /** Null: the hardware cannot be read. */
  readonly tree: Promise<object | null>
  /** Null: no BMC, or no address. */
  readonly bmcAddress: Promise<string | null>
}) {
  const { say, lines, onWait } = log
  let found: readonly SurveyedDisk[] = []
  let disks: readonly InventoryDisk[] = []
  let isListed = false
  let firmware: FirmwareFacts | null = null
  let sending: Promise<void> | null = null

  const inventory = () => ({
    disks,
    ...(firmware === null || firmware.secure_boot === null
      ? {}
      : { secure_boot: firmware.secure_boot }),
  })

  async function sendTree() {
    const [lshw, bmc_address] = await Promise.all([tree, bmcAddress])
    if (disks.length === 0) return
    const known = { ...inventory(), ...(lshw === null ? {} : { lshw }) }
    const reported = {
      ...known,
      ...(firmware === null ? {} : { firmware }),
      ...(bmc_address === null ? {} : { bmc_address }),
    }
    // Many machines boot at once, and each sends much: the server has some come again.
    const retry = { ms: left() }
    const sent = await client.sendInventory(reported, retry)
    // A server of an older release refuses what it does not know.
    const isRefused = !sent.ok && sent.refusal.status === 422
    if (isRefused && lshw !== null) await client.sendInventory(known, retry)
  }

  return {
    client,
    say,
    transcript: () => lines,
    disks: () => disks,
    isListed: () => isListed,
    async readDisks(): Promise<readonly InventoryDisk[]> {
      const names = await readPathNames(given.placeNames)
      found = await given.disks.survey({ loops: given.loops ?? false })
      disks = listInventory(found, names)
      firmware = await (given.readFirmware?.() ?? readFirmware(process.arch))
      return disks
    },
    /** The disk as it was last read. */
    choose(path: string): DiskChoice | null {
      const seen = found.find((disk) => disk.path === path)
      return seen === undefined ? null : chooseDisk(seen)
    },
    /** Null: the server took the list of `readDisks`. */
    async sendDisks(retry: RetryTime): Promise<Rejection | null> {
      const sent = await client.sendInventory(inventory(), retry)
      isListed = sent.ok
      return sent.ok ? null : sent.refusal
    },
    /** Resolves even unsent. A new machine is known only after its request for a plan. */
    sendHardware: (): Promise<void> => (sending ??= sendTree()),
    /** Ends after too long a silence of all servers. */
    retryTime: (): RetryTime => ({
      ms: left(),
      onRetry({ reason }) {
        say(`The server does not answer (${reason}); trying again…`)
        onWait()
      },
    }),
  }
}

async function find(
  { bases: own, others, given }: RemoteMachineOptions,
  log: ContactLog,
  deadline: number,
) {
  const [only, ...more] = own
  if (only !== undefined && more.length === 0) return only
  const bases = [...own, ...others]
  const { env, signal, now } = given
  const onWait = () => {
    log.say(`Looking for the machine server at ${bases.join(' and ')}…`)
    log.onWait()
  }
  return await searchServer(bases, { env, signal, ms: deadline - now(), onWait })
}

/** The plan is asked for even where the list cannot be made or sent. */
async function sendFirst({
  readDisks: look,
  sendDisks,
  say,
  retryTime,
}: RemoteMachine): Promise<void> {
  try {
    await look()
  } catch (thrown) {
    say(`The disks of this machine cannot be listed: ${renderError(thrown)}`)
    return
  }
  const rejection = await sendDisks(retryTime())
  // 404: unknown to the server until we ask for the plan.
  if (rejection !== null && rejection.status !== 404) {
    say(`The server refused the list of disks: ${rejection.reason}.`)
  }
}
