/** Current line: the events that changes of a machine record in the journal ("Recorded system events"). */
import { describeDisks, type MachineEvent } from '#fleet/machine/rules/flash-events.ts'
import type { Inventory } from '#engine/inventory/rules/machine.ts'
import type { BootRuling } from './boot.ts'
import { channelOf, namesWith, type Machine } from './machine.ts'
import type { PlanRuling } from './plan.ts'
import { renderDiskMismatch } from './target.ts'
import { isWaiting, type OnceOrder } from '#fleet/once/rules/once-order.ts'

const DESCRIBED = namesWith('title')

export function describe(machine: Machine): Readonly<Record<string, unknown>> {
  const { capture, once } = machine
  const said = {
    ...machine,
    channel: channelOf(machine),
    capture: capture?.name ?? null,
    once: isWaiting(once) ? once.entry : null,
  }
  const named = DESCRIBED.filter((name) => !RARE.has(name) || said[name] !== null)
  return Object.fromEntries(named.map((name) => [name, said[name]]))
}

/** Said only where there is one. */
const RARE: ReadonlySet<string> = new Set(['channel', 'once'])

const OFFER_TEXTS = {
  'to-disk': 'boots its own disk',
  'to-live': 'boots the live system',
  'to-wait': 'waits',
  'to-entry': 'boots something else once',
} as const

/** `isRepeat`: the same was offered in this boot already. */
export function describeScript(
  machine: Machine,
  ruling: BootRuling,
  isRepeat: boolean,
): readonly MachineEvent[] {
  const { rule, reason, decision, alarms } = ruling
  const { mac, boot_mode, cycle } = machine
  // A queued machine asks three times a minute; only the beginning of its wait is an event.
  if (rule === 'queued' && cycle.queued_at !== null) return []
  const offered = {
    kind: 'netboot.pxe.offered',
    summary: `${mac} ${OFFER_TEXTS[decision.kind]}: ${reason}`,
    details: { boot_mode, offer: decision.kind, rule },
  }
  if (!alarms) return isRepeat ? [] : [offered]
  const loop = {
    kind: 'netboot.loop.suspected',
    summary: `${mac} booted the live system ${cycle.offers} times and never finished`,
    details: { boot_mode, offers: cycle.offers, half_written: rule === 'loop-to-person' },
  }
  return [offered, loop]
}

export function describePlanned(machine: Machine, { plan, rule, mismatch }: PlanRuling) {
  const { mac, boot_mode, target_disk_serial } = machine
  const planned: MachineEvent = {
    kind: 'netboot.pxe.plan',
    summary: `${mac} requested its plan: ${plan.mode}`,
    details: { plan: plan.mode, boot_mode, rule },
  }
  if (mismatch === null) return [planned]
  const doubted: MachineEvent = {
    kind: 'netboot.plan.doubted',
    summary: `${mac} is not flashed: ${renderDiskMismatch(mismatch, target_disk_serial ?? '')}`,
    details: { ...mismatch, target_disk_serial },
  }
  return [planned, doubted]
}

export const describeOnceEnd = (
  { mac }: Machine,
  once: OnceOrder | null,
): readonly MachineEvent[] =>
  once === null || once.used_at !== null
    ? []
    : [
        {
          kind: 'machine.once.expired',
          summary: `${mac} no longer boots ${once.entry} once, as it did not come within a day`,
          details: { entry: once.entry, ordered_at: once.ordered_at },
        },
      ]

/** By what the machine says of itself: hostile. */
export const describeOnceUnfit = (
  { mac }: Machine,
  { entry }: OnceOrder,
  { platform = '', buildarch = '' }: Readonly<Record<string, string>>,
): MachineEvent => {
  const said = [platform, buildarch].map((word) => (/^[\w-]{1,16}$/.test(word) ? word : 'unknown'))
  const [firmware, processor] = said
  return {
    kind: 'machine.once.unfit',
    summary: `${mac} does not boot ${entry} once, as the entry is for other machines than this one (firmware ${firmware}, processor ${processor})`,
    details: { entry, platform: firmware, buildarch: processor },
  }
}

export const describeOnceUsed = ({ mac }: Machine, { entry }: OnceOrder): MachineEvent => ({
  kind: 'machine.once.booted',
  summary: `${mac} fetched ${entry}, to boot it once`,
  details: { entry },
})

/** Never what they say. */
export const describeOnceAnswered = ({ mac }: Machine, { entry }: OnceOrder): MachineEvent => ({
  kind: 'machine.once.answered',
  summary: `${mac} fetched its answers for ${entry}`,
  details: { entry },
})

/** Where boot tokens are preferred, and this machine's live system passes none on. */
export const describeUnproven = (mac: string): MachineEvent => ({
  kind: 'machine.token.missing',
  summary: `${mac} requested its plan without a boot token`,
  details: null,
})

/** Has the name of the template, never its content. */
export const describeFirstBootFetched = ({ mac, first_boot }: Machine): MachineEvent => ({
  kind: 'machine.first_boot.fetched',
  summary: `${mac} fetched its first-boot configuration`,
  details: { first_boot },
})

/** Only when the bit changes. */
export function describeArmed(
  before: Machine,
  after: Machine,
  name: string,
): readonly MachineEvent[] {
  if (before.saw_flasher_boot === after.saw_flasher_boot) return []
  const summary = `${after.mac} is fetching the live system`
  return [{ kind: 'netboot.flasher.armed', summary, details: { name } }]
}

export const describeInventory = (machine: Machine, inventory: Inventory): MachineEvent =>
  describeDisks(machine, inventory, {
    serials: inventory.disks
      .map(({ serial }) => serial)
      .filter((serial) => serial !== null)
      .slice(0, MAX_SERIALS),
    lshw: inventory.hardware !== null,
  })

/** An event is a line, not the list itself. */
const MAX_SERIALS = 64

export function listCaptureEnds({ mac, capture }: Machine): readonly MachineEvent[] {
  if (capture === null || capture.result === null) return []
  const { name, result, reason } = capture
  const why = reason === null ? '' : `: ${reason}`
  const { kind, words } = CAPTURE_ENDS[result]
  return [{ kind, summary: `${mac} ${words} ${name}${why}`, details: { name, reason } }]
}

const CAPTURE_ENDS = {
  done: { kind: 'machine.captured', words: 'was captured as' },
  failed: { kind: 'machine.capture_failed', words: 'could not be captured as' },
  cancelled: { kind: 'machine.capture_cancelled', words: 'was no longer captured as' },
} as const

export const describeLateHardware = ({ mac }: Machine): MachineEvent => ({
  kind: 'machine.inventory',
  summary: `${mac} reported its hardware after its flash`,
  details: { lshw: true },
})
