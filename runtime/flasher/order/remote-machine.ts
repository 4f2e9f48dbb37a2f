/** This machine's contact with its server: finds it, sends it the disks and the hardware. */
import { type SurveyedDisk, listInventory } from '#engine/disk/rules/disk.ts'
import { renderError } from '#kit/foundation/fault.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import type { InventoryDisk } from '#engine/inventory/rules/machine.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { readPathNames } from '#engine/disk/sticks.ts'
import {
  createServerClient,
  type RetryTime,
  type ServerClient,
} from '#flasher/link/server-client.ts'
import { searchServer } from '#flasher/link/server-site.ts'
import type { Environment } from '#kit/host/shell.ts'
import { readAuthorities } from '#kit/net/http-client.ts'
import type { Rejection } from '#flasher/link/server-exchange.ts'
import { readSecureBoot } from '#fleet/boot/secure-boot.ts'
import { chooseDisk, type DiskChoice, type DrivenScreen } from './rules/flash-choice.ts'
import { decideTimes, type RemoteDependencies } from './remote-hooks.ts'

export type RemoteMachine = ReturnType<typeof createRemoteMachine>

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
export async function openRemoteMachine(
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
    onMove: (from, to) => log.say(`${from} does not answer; going on with ${to}.`),
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
    if (!isSaid) say('Ctrl-C ends the wait, and the wizard opens.')
    isSaid = true
  }
}

interface ContactLog extends ReturnType<typeof createTranscript> {
  onWait(): void
}

interface MachineDependencies {
  readonly given: RemoteDependencies
  readonly client: ServerClient
  readonly log: ContactLog
  /** Milliseconds. */
  readonly left: () => number
  /** Null: the hardware cannot be read. */
  readonly tree: Promise<object | null>
  /** Null: no BMC, or no address. */
  readonly bmcAddress: Promise<string | null>
}

function createRemoteMachine({ given, client, log, left, tree, bmcAddress }: MachineDependencies) {
  const { say, lines, onWait } = log
  let found: readonly SurveyedDisk[] = []
  let disks: readonly InventoryDisk[] = []
  let isListed = false
  let secureBoot: boolean | null = null
  let sending: Promise<void> | null = null

  const inventory = () => ({
    disks,
    ...(secureBoot === null ? {} : { secure_boot: secureBoot }),
  })

  async function sendTree() {
    const [lshw, bmc_address] = await Promise.all([tree, bmcAddress])
    if ((lshw === null && bmc_address === null) || disks.length === 0) return
    const known = { ...inventory(), ...(lshw === null ? {} : { lshw }) }
    const told = bmc_address === null ? known : { ...known, bmc_address }
    // Many machines boot at once, and each sends much: the server has some come again.
    const retry = { ms: left() }
    const sent = await client.sendInventory(told, retry)
    // A server of an older release refuses what it does not know.
    const isRefused = !sent.ok && sent.refusal.status === 422 && bmc_address !== null
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
      secureBoot = await readSecureBoot(given.secureBoot)
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
    /**
     * Resolves also when it cannot be sent. A new machine is known only after its request for a
     * plan.
     */
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
