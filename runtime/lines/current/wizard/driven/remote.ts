/** Server-driven mode: posts the disks, fetches the plan, does what it says ("Server-driven mode"). */
import { isBootWanted } from '../../../../core/disk/boot-entry.ts'
import { renderError } from '../../../../core/foundation/fault.ts'
import { parseMac } from '../../../../core/machine/mac.ts'
import type { InventoryDisk } from '../../../../core/machine/machine.ts'
import { printable } from '../../../../core/foundation/printable.ts'
import { refuse, type Result } from '../../../../core/foundation/result.ts'
import { parseServerAddress } from '../../../../core/net/server-address.ts'
import { renderSize } from '../../../../core/foundation/size.ts'
import { settle } from '../../../../services/host/watch.ts'
import type { DiskChoice } from '../flow/flow.ts'
import { openRemoteMachine, type RemoteMachine, type RemoteDependencies } from './remote-machine.ts'
import { createHooks } from './remote-hooks.ts'
import { findDisk, parseRemotePlan, type RemotePlan } from './remote-plan.ts'
import type { FlashEnd, FlashOrder, Hooks, RemoteOutcome, DrivenScreen } from '../flow/start.ts'

interface RemoteRequest {
  /** As `--server` names it. */
  readonly server: string
  /** As `--mac` says it, in any spelling. */
  readonly mac: string
}

/**
 * Never throws: whatever fails ends in a wizard with the server's catalog and the reason on the
 * screen, because a machine that nobody watches must not stop at an error nor try for ever.
 */
export async function drive(
  stage: DrivenScreen,
  request: RemoteRequest,
  parts: RemoteDependencies,
): Promise<RemoteOutcome> {
  const bases = parseServerAddress(request.server)
  const mac = parseMac(request.mac.trim())
  let here: DrivenSession = {
    stage,
    parts,
    base: bases.ok ? (bases.value.at(-1) ?? null) : null,
    machine: null,
  }
  if (!bases.ok) return open(here, `${quote(request.server)} is no address of a server.`)
  if (!mac.ok) return open(here, `${quote(request.mac)} is no MAC address.`)
  try {
    const machine = await openRemoteMachine({ bases: bases.value, mac: mac.value, stage, parts })
    if (!machine.ok) return open(here, machine.refusal)
    here = { ...here, base: machine.value.client.base, machine: machine.value }
    return await follow(machine.value, here)
  } catch (thrown) {
    return open(here, `Here the server cannot be followed: ${renderError(thrown)}`)
  }
}

const quote = (text: string) => JSON.stringify(printable(text.slice(0, 100)))

async function follow(machine: RemoteMachine, here: DrivenSession): Promise<RemoteOutcome> {
  const got = await machine.client.fetchPlan(machine.patience())
  void machine.tellHardware()
  if (!got.ok) return open(here, `The server gave no plan: ${got.refusal.reason}.`)
  const plan = parseRemotePlan(got.value)
  if (!plan.ok) return open(here, `The plan of the server cannot be followed: ${plan.refusal}.`)
  // It knows us by now, if it did not before.
  if (!machine.isTold() && machine.disks().length > 0) await machine.tellDisks({ ms: 0 })
  return await act(plan.value, machine, here)
}

function act(
  plan: RemotePlan,
  machine: RemoteMachine,
  here: DrivenSession,
): Promise<RemoteOutcome> {
  switch (plan.mode) {
    case 'flash':
      return flash(plan, machine, here)
    case 'interactive':
      return Promise.resolve(open(here, plan.reason, plan.catalog))
    case 'inventory':
      return leaveInventory(machine, here)
    case 'exit':
      return exit(plan.reason, machine)
  }
}

/** Where a wizard opens. */
interface DrivenSession {
  readonly stage: DrivenScreen
  readonly parts: RemoteDependencies
  /** Null: nobody could tell which server is meant. */
  readonly base: string | null
  readonly machine: RemoteMachine | null
}

function open(
  place: DrivenSession,
  notice: string | null,
  catalog: string | null = null,
): RemoteOutcome {
  const { stage, base, machine } = place
  if (notice !== null) void place.parts.marks.status(`wizard: ${notice}`)
  return {
    kind: 'interactive',
    start: {
      screen: 'image',
      catalog: catalog ?? (base === null ? null : `${base}/catalog.toml`),
      notice,
      identity: { ...stage.identity, mac: machine?.mac ?? stage.identity.mac, server: base },
    },
    hooks: hooksFor(place, false),
  }
}

/** `unattended`: of the flash that the plan asks for, `registersBoot`: also by its wish. */
function hooksFor(
  place: DrivenSession,
  unattended: boolean,
  registersBoot = false,
): Required<Hooks> {
  const { machine, parts } = place
  return createHooks({
    ...parts,
    client: machine?.client ?? null,
    mode: unattended ? 'flash' : 'interactive',
    registersBoot: registersBoot || isBootWanted(parts.env['FLASHER_REGISTER_UEFI_BOOT']),
    disks: machine?.disks ?? none,
    transcript: machine?.transcript ?? none,
  })
}

const none = () => []

async function exit(reason: string | null, machine: RemoteMachine): Promise<RemoteOutcome> {
  machine.say(reason ?? 'The server has nothing to do for this machine.')
  machine.say('Leaving: the machine goes on with its own disk.')
  await settle(machine.tellHardware(), LAST_WORDS_MS)
  return { kind: 'exit', code: 0 }
}

async function leaveInventory(machine: RemoteMachine, here: DrivenSession): Promise<RemoteOutcome> {
  const no = machine.isTold() ? null : await machine.tellDisks(machine.patience())
  if (no !== null) return open(here, `The server did not take the disks: ${no.reason}.`)
  machine.say(`The server has the list of ${count(machine.disks().length)}; reading the hardware…`)
  // lshw has its own end.
  await machine.tellHardware()
  return await restart(machine, here, 'inventory posted; rebooting')
}

const count = (disks: number) => (disks === 1 ? '1 disk' : `${disks} disks`)

/** For news that are on their way when the machine is about to leave. */
const LAST_WORDS_MS = 2000

async function restart(
  machine: RemoteMachine,
  here: DrivenSession,
  mark: string,
): Promise<RemoteOutcome> {
  await settle(machine.tellHardware(), LAST_WORDS_MS)
  await machine.parts.marks.mark(mark)
  machine.say('Rebooting…')
  const gone = await machine.parts.power.reboot()
  if (gone.ok) return { kind: 'exit', code: 0 }
  return open(here, `This machine cannot be restarted (${gone.refusal}): do it by hand.`)
}

type FlashPlan = Extract<RemotePlan, { mode: 'flash' }>

async function flash(
  plan: FlashPlan,
  machine: RemoteMachine,
  here: DrivenSession,
): Promise<RemoteOutcome> {
  const hooks = hooksFor(here, true, plan.registerUefiBoot)
  const disk = await findAgain(plan, machine)
  if (!disk.ok) {
    const end = { ...REFUSED, reason: disk.refusal }
    await hooks.onEnd(end, orderFor(plan, { path: plan.disk }), machine.say)
    return open(here, failureNotice(end))
  }
  await machine.parts.marks.mark('auto-flash starting')
  const { path } = disk.value
  const order = orderFor(plan, machine.choose(path) ?? { path })
  machine.say(`The server has ${order.image.name} flashed to ${renderDisk(disk.value)}.`)
  let notice: string | null = null
  const end = await machine.stage.runFlash(order, {
    ...hooks,
    async onEnd(...about) {
      const aftermath = await hooks.onEnd(...about)
      notice = aftermath.notice
      return aftermath
    },
  })
  if (end.kind !== 'done') return open(here, failureNotice(end))
  if (notice !== null) return open(here, notice)
  return await restart(machine, here, 'flash complete; rebooting')
}

/** Once more, right before the write: what was plugged meanwhile may bear the same name. */
async function findAgain(
  plan: FlashPlan,
  machine: RemoteMachine,
): Promise<Result<InventoryDisk, string>> {
  try {
    return findDisk(await machine.look(), plan.disk)
  } catch (thrown) {
    return refuse(`The disks of this machine cannot be listed: ${renderError(thrown)}`)
  }
}

const REFUSED = {
  kind: 'failed',
  code: 'plan-refused',
  hint: null,
  leaves: 'Nothing was written.',
} as const

const orderFor = (
  plan: FlashPlan,
  { path: disk, ...seen }: DiskChoice | Pick<DiskChoice, 'path'>,
): FlashOrder => ({
  image: {
    name:
      plan.name ?? (printable(plan.image.split(/[?#]/, 1)[0]?.split('/').at(-1) ?? '') || 'image'),
    location: plan.image,
    format: plan.format,
    sizeBytes: null,
    sha256: plan.sha256,
    ref: null,
  },
  disk,
  identity: null,
  ...seen,
  unattended: true,
})

function renderDisk({ path, size, size_bytes: bytes, model, serial }: InventoryDisk): string {
  // As on all other screens; `size` is as lsblk has it.
  const shown = bytes === undefined || bytes === null ? size : renderSize(bytes)
  return printable([path, shown, model, serial].filter((part) => part !== null).join(', '))
}

function failureNotice(end: Exclude<FlashEnd, { kind: 'done' }>): string {
  const what = end.kind === 'cancelled' ? 'was cancelled' : `failed: ${end.reason}`
  return [
    'The flash that the server asked for',
    `${what.replace(/\.$/, '')}.`,
    end.leaves,
    end.hint,
  ]
    .filter((part) => part !== null && part !== '')
    .join(' ')
}
