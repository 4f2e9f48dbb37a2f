/** A machine of the current line and all that decides about it, in memory: contacts as function calls. */
import { parseMac, type Mac } from '#kit/net/rules/mac.ts'
import type { LiveSet, LiveSets } from '#fleet/boot/rules/boot-decision.ts'
import type { CatalogEntry } from '#engine/catalog/rules/catalog.ts'
import type { InventoryDisk } from '#engine/inventory/rules/machine.ts'
import { decideBoot, type BootRuling } from '#server/current/machines/rules/boot.ts'
import * as contacts from '#server/current/machines/rules/contact.ts'
import { applyUpsert } from '#server/current/machines/rules/operator-edits.ts'
import type { Machine } from '#server/current/machines/rules/machine.ts'
import { decidePlan, type PlanRuling } from '#server/current/machines/rules/plan.ts'
import type { PxeRules, Surroundings } from '#server/current/machines/rules/surroundings.ts'
import type { QueueRules } from '#server/current/machines/rules/queue.ts'
import type { TokenRules } from '#server/current/machines/rules/token.ts'
import { parseUpsert } from '#server/current/machines/rules/upsert.ts'

export const REF = 'a'.repeat(64)
export const OTHER_REF = 'b'.repeat(64)
export const PXE_RULES: PxeRules & TokenRules & QueueRules = {
  max_flashes: 0,
  flash_silence: 1800,
  tokens: 'off',
  tokens_hours: 24,
  loop_limit: 5,
  inventory_refresh: 86_400,
  boot_disk_once_after_flash: false,
}

export function macOf(text: string): Mac {
  const mac = parseMac(text)
  if (!mac.ok) throw new Error(`${text} is not a MAC address`)
  return mac.value
}
export const MAC = macOf('52:54:00:12:34:56')

export const entryOf = (ref: string, more: Partial<CatalogEntry> = {}): CatalogEntry => ({
  ref,
  name: 'debian.img.zst',
  src: 'https://images.example/debian.img.zst',
  resolvedSrc: null,
  url: 'http://cache.example:8081/b/token/debian.img.zst',
  format: 'img.zst',
  arch: 'x86_64',
  sha256: 'c'.repeat(64),
  sizeBytes: 1000,
  description: null,
  ...more,
})

export const diskOf = (
  serial: string | null,
  more: Partial<InventoryDisk> = {},
): InventoryDisk => ({
  path: '/dev/sda',
  size: '500G',
  vendor: null,
  model: null,
  serial,
  tran: 'sata',
  removable: false,
  readonly: false,
  ...more,
})

export const setOf = (arch: 'x86_64' | 'arm64', more: Partial<LiveSet> = {}): LiveSet => ({
  vmlinuz: `flasher-netboot-pc-${arch}-v1.2.3.vmlinuz`,
  initrd: `flasher-netboot-pc-${arch}-v1.2.3.initrd`,
  squashfs: `flasher-netboot-pc-${arch}-v1.2.3.squashfs`,
  squashfsSha256: 'd'.repeat(64),
  ...more,
})

export const X86_SETS: LiveSets = { x86_64: setOf('x86_64'), arm64: null }

export interface Fixture {
  machine: Machine
  /** Seconds since the epoch. */
  clock: number
  surroundings: Surroundings
  now(): string
  /** `GET /pxe/{mac}`. */
  script(): BootRuling
  /** `GET /boot/{name}?mac=`. */
  bootFile(): void
  plan(): PlanRuling
  disks(...disks: readonly InventoryDisk[]): void
  done(): void
  failed(reason?: string): void
  /** `PUT /machines/{mac}`; throws when it is refused. */
  put(body: Readonly<Record<string, unknown>>): void
  flash(mode: string): void
}

const iso = (seconds: number) => new Date(seconds * 1000).toISOString()

/** Discovered by its first contact, which is not answered yet. */
export function createFixture(more: Partial<Surroundings> = {}): Fixture {
  const start = 1_800_000_000
  const refs = new Map([REF, OTHER_REF].map((ref) => [ref, entryOf(ref)]))
  const fixture: Fixture = {
    machine: contacts.discover(MAC, iso(start)),
    clock: start,
    surroundings: {
      base: 'http://10.0.0.1:8080',
      now: iso(start),
      findImage: (ref) => refs.get(ref) ?? null,
      findTemplate: () => null,
      cacheUrl: 'http://127.0.0.1:8081',
      sets: () => X86_SETS,
      settings: PXE_RULES,
      placeOf: () => null,
      ...more,
    },
    now: () => iso(fixture.clock),
    script() {
      const ruling = decideBoot(fixture.machine, { ...fixture.surroundings, now: fixture.now() })
      fixture.machine = contacts.rememberOffer(fixture.machine, ruling, fixture.now())
      return ruling
    },
    bootFile() {
      fixture.machine = contacts.rememberBootFile(fixture.machine, fixture.now())
    },
    plan() {
      const ruling = decidePlan(fixture.machine, { ...fixture.surroundings, now: fixture.now() })
      fixture.machine = contacts.rememberPlan(fixture.machine, ruling.plan, fixture.now())
      return ruling
    },
    disks(...disks) {
      fixture.machine = contacts.rememberDisks(fixture.machine, { disks }, fixture.now())
    },
    done() {
      fixture.machine = contacts.rememberDone(fixture.machine, fixture.now())
    },
    failed(reason) {
      fixture.machine = contacts.rememberFailure(fixture.machine, reason ?? null, fixture.now())
    },
    put(body) {
      const upsert = parseUpsert(body)
      if (!upsert.ok) throw new Error(JSON.stringify(upsert.refusal))
      const after = applyUpsert(fixture.machine, MAC, upsert.value, fixture.now())
      if (!after.ok) throw new Error(JSON.stringify(after.refusal))
      fixture.machine = after.value
    },
    flash(boot_mode) {
      fixture.put({ boot_mode, bty_image_ref: REF, target_disk_serial: 'S1' })
    },
  }
  return fixture
}
