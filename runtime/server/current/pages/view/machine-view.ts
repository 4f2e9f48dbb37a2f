/** A machine as pages show it: its record, the decisions of the rules, its image and its disk. */
import { type BootRule, isFlashMode } from '#server/current/rules/boot-mode.ts'
import type { CatalogEntry } from '#engine/catalog/rules/catalog.ts'
import { findPicked } from '#engine/inventory/rules/disk-pick.ts'
import type { InventoryDisk } from '#engine/inventory/rules/machine.ts'
import { decideDrift, type Drift, type LastWritten } from '#fleet/run/rules/drift.ts'
import type { Run } from '#engine/inventory/rules/run.ts'
import { decideBoot, type BootRuling } from '#server/current/rules/boot.ts'
import { html, type Content } from '#kit/web/ui/html.ts'
import { channelOf, targetOf, type Machine } from '#server/current/rules/machine.ts'
import { decidePlan, type PlanRuling } from '#server/current/rules/plan.ts'
import { decideState, type StateView } from '#server/current/rules/state.ts'
import type { Surroundings } from '#server/current/rules/surroundings.ts'

export interface MachineView {
  readonly machine: Machine
  readonly boot: BootRuling
  readonly plan: PlanRuling
  readonly view: StateView
  /** Null: none assigned, or no longer in the catalog. */
  readonly image: CatalogEntry | null
  /** Null: none selected, or not exactly one of that name. */
  readonly disk: InventoryDisk | null
  readonly run: Run | null
  /** Between disk and assignment; null: none, or unknown. */
  readonly drift: Drift | null
}

/** By the rules of script and plan. `run`: under way; `written`: by the last flash; null: none. */
export function viewMachine(
  machine: Machine,
  surroundings: Surroundings,
  run: Run | null,
  written: LastWritten | null = null,
): MachineView {
  const boot = decideBoot(machine, surroundings)
  const plan = decidePlan(machine, surroundings, ALL_FEATURES)
  const { bty_image_ref: ref } = machine
  const target = targetOf(machine)
  const disk = target === null ? null : findPicked(machine.known_disks ?? [], target)
  const image = ref === null ? null : surroundings.findImage(ref)
  const serial = disk?.ok === true ? disk.value.serial : null
  return {
    machine,
    boot,
    plan,
    view: decideState(machine, { boot, plan }, run),
    image,
    disk: disk?.ok === true ? disk.value : null,
    run,
    // The former content is being overwritten.
    drift: run === null ? decideDrift({ ref, image, serial }, written) : null,
  }
}

const ALL_FEATURES = { firstBoot: true, capture: true, diskId: true }

/** The given name, else host name, else MAC. */
export const nameOf = ({
  name,
  hostname,
  mac,
}: Pick<Machine, 'name' | 'hostname' | 'mac'>): string => name ?? hostname ?? mac

/** At once or after its turn in the queue. */
export const willFlash = ({ machine, boot, plan }: MachineView): boolean =>
  isFlashMode(machine.boot_mode) &&
  (boot.decision.kind === 'to-live' || boot.rule === 'queued') &&
  plan.plan.mode === 'flash'

export const isWaiting = ({ machine, boot }: MachineView): boolean =>
  boot.rule === 'queued' && machine.cycle.queued_at !== null

/** Until an operator acts, because the disk may be half written. */
export const isHeldBack = ({ boot: { rule }, run }: MachineView): boolean =>
  HELD_BACK.has(rule) && (run === null || run.stalled)

const HELD_BACK: ReadonlySet<BootRule> = new Set(['half-written', 'loop-to-person', 'held-back'])

/** Flashes once obstacles are gone, such as a missing live system. Operators confirm this. */
export const isArmed = ({
  boot_mode,
  bty_image_ref,
  target_disk_serial,
  locked,
  cycle,
}: Machine): boolean =>
  isFlashMode(boot_mode) &&
  bty_image_ref !== null &&
  target_disk_serial !== null &&
  !locked &&
  cycle.disarmed_at === null

/** ` (stable)`, after the image's name. */
export function renderChannel(machine: Machine): Content {
  const channel = channelOf(machine)
  return channel === null ? null : html` <span class="dim nowrap">(${channel})</span>`
}
