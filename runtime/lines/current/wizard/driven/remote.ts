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
import { openBox, type Box, type RemoteParts } from './remote-machine.ts'
import { createHooks } from './remote-hooks.ts'
import { findDisk, parseRemotePlan, type RemotePlan } from './remote-plan.ts'
import type { FlashEnd, FlashOrder, Hooks, RemoteOutcome, Stage } from '../flow/start.ts'

export interface RemoteRequest {
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
  stage: Stage,
  request: RemoteRequest,
  parts: RemoteParts,
): Promise<RemoteOutcome> {
  const bases = parseServerAddress(request.server)
  const mac = parseMac(request.mac.trim())
  let here: Place = {
    stage,
    parts,
    base: bases.ok ? (bases.value.at(-1) ?? null) : null,
    box: null,
  }
  if (!bases.ok) return open(here, `${quote(request.server)} is no address of a server.`)
  if (!mac.ok) return open(here, `${quote(request.mac)} is no MAC address.`)
  try {
    const box = await openBox({ bases: bases.value, mac: mac.value, stage, parts })
    if (!box.ok) return open(here, box.refusal)
    here = { ...here, base: box.value.client.base, box: box.value }
    return await follow(box.value, here)
  } catch (thrown) {
    return open(here, `Here the server cannot be followed: ${renderError(thrown)}`)
  }
}

const quote = (text: string) => JSON.stringify(printable(text.slice(0, 100)))

async function follow(box: Box, here: Place): Promise<RemoteOutcome> {
  const got = await box.client.fetchPlan(box.patience())
  void box.tellHardware()
  if (!got.ok) return open(here, `The server gave no plan: ${got.refusal.reason}.`)
  const plan = parseRemotePlan(got.value)
  if (!plan.ok) return open(here, `The plan of the server cannot be followed: ${plan.refusal}.`)
  // It knows us by now, if it did not before.
  if (!box.isTold() && box.disks().length > 0) await box.tellDisks({ ms: 0 })
  return await act(plan.value, box, here)
}

function act(plan: RemotePlan, box: Box, here: Place): Promise<RemoteOutcome> {
  switch (plan.mode) {
    case 'flash':
      return flash(plan, box, here)
    case 'interactive':
      return Promise.resolve(open(here, plan.reason, plan.catalog))
    case 'inventory':
      return leaveInventory(box, here)
    case 'exit':
      return exit(plan.reason, box)
  }
}

/** Where a wizard opens. */
interface Place {
  readonly stage: Stage
  readonly parts: RemoteParts
  /** Null: nobody could tell which server is meant. */
  readonly base: string | null
  readonly box: Box | null
}

function open(place: Place, notice: string | null, catalog: string | null = null): RemoteOutcome {
  const { stage, base, box } = place
  if (notice !== null) void place.parts.marks.status(`wizard: ${notice}`)
  return {
    kind: 'interactive',
    start: {
      screen: 'image',
      catalog: catalog ?? (base === null ? null : `${base}/catalog.toml`),
      notice,
      identity: { ...stage.identity, mac: box?.mac ?? stage.identity.mac, server: base },
    },
    hooks: hooksFor(place, false),
  }
}

/** `unattended`: of the flash that the plan asks for, `registersBoot`: also by its wish. */
function hooksFor(place: Place, unattended: boolean, registersBoot = false): Required<Hooks> {
  const { box, parts } = place
  return createHooks({
    ...parts,
    client: box?.client ?? null,
    mode: unattended ? 'flash' : 'interactive',
    registersBoot: registersBoot || isBootWanted(parts.env['FLASHER_REGISTER_UEFI_BOOT']),
    disks: box?.disks ?? none,
    transcript: box?.transcript ?? none,
  })
}

const none = () => []

async function exit(reason: string | null, box: Box): Promise<RemoteOutcome> {
  box.say(reason ?? 'The server has nothing to do for this machine.')
  box.say('Leaving: the machine goes on with its own disk.')
  await settle(box.tellHardware(), LAST_WORDS_MS)
  return { kind: 'exit', code: 0 }
}

async function leaveInventory(box: Box, here: Place): Promise<RemoteOutcome> {
  const no = box.isTold() ? null : await box.tellDisks(box.patience())
  if (no !== null) return open(here, `The server did not take the disks: ${no.reason}.`)
  box.say(`The server has the list of ${count(box.disks().length)}; reading the hardware…`)
  // lshw has its own end.
  await box.tellHardware()
  return await restart(box, here, 'inventory posted; rebooting')
}

const count = (disks: number) => (disks === 1 ? '1 disk' : `${disks} disks`)

/** For news that are on their way when the machine is about to leave. */
const LAST_WORDS_MS = 2000

async function restart(box: Box, here: Place, mark: string): Promise<RemoteOutcome> {
  await settle(box.tellHardware(), LAST_WORDS_MS)
  await box.parts.marks.mark(mark)
  box.say('Rebooting…')
  const gone = await box.parts.power.reboot()
  if (gone.ok) return { kind: 'exit', code: 0 }
  return open(here, `This machine cannot be restarted (${gone.refusal}): do it by hand.`)
}

type FlashPlan = Extract<RemotePlan, { mode: 'flash' }>

async function flash(plan: FlashPlan, box: Box, here: Place): Promise<RemoteOutcome> {
  const hooks = hooksFor(here, true, plan.registerUefiBoot)
  const disk = await findAgain(plan, box)
  if (!disk.ok) {
    const end = { ...REFUSED, reason: disk.refusal }
    await hooks.onEnd(end, orderFor(plan, { path: plan.disk }), box.say)
    return open(here, failureNotice(end))
  }
  await box.parts.marks.mark('auto-flash starting')
  const { path } = disk.value
  const order = orderFor(plan, box.choose(path) ?? { path })
  box.say(`The server has ${order.image.name} flashed to ${renderDisk(disk.value)}.`)
  let notice: string | null = null
  const end = await box.stage.runFlash(order, {
    ...hooks,
    async onEnd(...about) {
      const aftermath = await hooks.onEnd(...about)
      notice = aftermath.notice
      return aftermath
    },
  })
  if (end.kind !== 'done') return open(here, failureNotice(end))
  if (notice !== null) return open(here, notice)
  return await restart(box, here, 'flash complete; rebooting')
}

/** Once more, right before the write: what was plugged meanwhile may bear the same name. */
async function findAgain(plan: FlashPlan, box: Box): Promise<Result<InventoryDisk, string>> {
  try {
    return findDisk(await box.look(), plan.disk)
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
