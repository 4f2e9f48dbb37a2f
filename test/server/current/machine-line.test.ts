/** The rules as the shared server uses them: what is stored, answered and put on record. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { CatalogEntry } from '#engine/catalog/rules/catalog.ts'
import type { InventoryDisk } from '#engine/inventory/rules/machine.ts'
import {
  createKeptAnswers,
  createMachineLine,
  type LineDependencies,
} from '#server/current/machine-line.ts'
import { createMachine, type Machine } from '#server/current/machines/rules/machine.ts'
import type { Contact } from '#server/routes/transition.ts'
import {
  diskOf,
  entryOf,
  MAC,
  PXE_RULES,
  REF,
  X86_SETS,
} from '#test/support/server/machine-fixture.ts'

const test = suite('machine line')

const CONTACT: Contact = {
  now: '2026-05-01T00:00:00.000Z',
  baseUrl: 'http://10.0.0.1:8080',
  ip: '10.0.0.2',
  bearer: null,
  query: {},
}
const BY = { actor: 'operator', ip: '10.0.0.3', at: CONTACT.now }
const GETTERS: LineDependencies = {
  findImage: (ref) => (ref === REF ? entryOf(ref) : null),
  findTemplate: () => null,
  sets: () => X86_SETS,
  settings: () => PXE_RULES,
  placeOf: () => null,
  hasRun: () => false,
  bootKey: { sign: () => 's'.repeat(43), verify: () => true },
  uploadKey: { sign: () => 'u'.repeat(43) },
  cacheUrl: () => 'http://127.0.0.1:8081',
}
const line = createMachineLine(GETTERS)
const FLASH = { boot_mode: 'flasher-flash-once', bty_image_ref: REF, target_disk_serial: 'S1' }
const bootFile = (name: string) => ({ kind: 'boot-file', name }) as const
const inventory = (hardware: string | null, ...disks: InventoryDisk[]) =>
  ({
    kind: 'inventory',
    inventory: {
      disks,
      disksLeftOut: 0,
      hardware: hardware === null ? null : Buffer.from(hardware),
      isHardwareLeftOut: false,
      secureBoot: null,
      bmcAddress: null,
      ownSerials: null,
    },
  }) as const
const kindsOf = (turn: { readonly events: readonly { readonly kind: string }[] }) =>
  turn.events.map(({ kind }) => kind)

function put(body: unknown) {
  const made = line.parseUpsert(body, null, { mac: MAC, by: BY })
  if (!made.ok) throw new Error(JSON.stringify(made.refusal))
  return made.value
}

test('a flash from script to done, each with its event', () => {
  const script = line.decideBoot(put(FLASH), { ...CONTACT, query: { buildarch: 'x86_64' } })
  assert.is(script.offer, 'flash')
  assert.match(script.script, /^#!ipxe\n# flasher: 52:54:00:12:34:56, mode flasher-flash-once\n/)
  assert.is(script.machine.arch, 'x86_64')
  assert.equal(kindsOf(script), ['netboot.pxe.offered'])
  const armed = line.transition(script.machine, bootFile('vmlinuz'), CONTACT)
  assert.equal(kindsOf(armed), ['netboot.flasher.armed'])
  const again = line.transition(armed.machine, bootFile('initrd'), CONTACT)
  assert.is(again.machine, armed.machine, 'nothing to store')
  assert.equal(kindsOf(again), [])
  const posted = inventory('{}', diskOf('S1'), diskOf(null))
  const listed = line.transition(armed.machine, posted, CONTACT)
  assert.equal(listed.events[0]?.details, { count: 2, serials: ['S1'], lshw: true })
  const plan = line.decidePlan(listed.machine, CONTACT)
  assert.equal([plan.mode, kindsOf(plan)], ['flash', ['netboot.pxe.plan']])
  const failed = line.transition(plan.machine, { kind: 'failed', reason: 'why' }, CONTACT)
  assert.equal(failed.events[0]?.details, { reason: 'why' })
  const done = line.transition(plan.machine, { kind: 'done' }, CONTACT)
  assert.equal(kindsOf(done), ['machine.flashed'])
  assert.is(line.decideBoot(done.machine, CONTACT).offer, 'flashed')
})

test('a suspected loop and a doubtful disk are put on record', () => {
  let machine = put(FLASH)
  for (let boot = 0; boot < PXE_RULES.loop_limit; boot++) {
    machine = line.decideBoot(machine, CONTACT).machine
  }
  const caught = line.decideBoot(machine, CONTACT)
  assert.equal(kindsOf(caught), ['netboot.pxe.offered', 'netboot.loop.suspected'])
  assert.equal(kindsOf(line.decideBoot(caught.machine, CONTACT)), ['netboot.pxe.offered'])
  const other = line.transition(put(FLASH), inventory(null), CONTACT).machine
  assert.equal(kindsOf(line.decidePlan(other, CONTACT)), [
    'netboot.pxe.plan',
    'netboot.plan.doubted',
  ])
})

test('what a decision means for a place among those that flash is a value of it', () => {
  assert.is(line.decideBoot(put(FLASH), CONTACT).slot, 'offered')
  assert.is(line.decideBoot(put({}), CONTACT).slot, 'passed')
  const waits = createMachineLine({
    ...GETTERS,
    placeOf: () => ({ place: 1, waiting: 1, flashing: 1, isNew: true }),
  })
  assert.is(waits.decideBoot(put(FLASH), CONTACT).slot, 'queued')
  assert.is(line.decidePlan(put(FLASH), CONTACT).slot, 'planned')
  assert.is(line.decidePlan(put({}), CONTACT).slot, 'released')
  const cancelled = { kind: 'run-stopped', result: 'cancelled', reason: null } as const
  const stopped = line.transition(put(FLASH), cancelled, CONTACT)
  assert.equal([stopped.slot, kindsOf(stopped)], ['released', []])
})

test('a plan that is asked for again within a second stores nothing', () => {
  const planned = line.decidePlan(put(FLASH), CONTACT).machine
  const at = (now: string) => line.decidePlan(planned, { ...CONTACT, now }).machine
  assert.is(at('2026-05-01T00:00:00.900Z'), planned)
  assert.is(at('2026-05-01T00:00:01.000Z').planned_at, '2026-05-01T00:00:01.000Z')
  const offered = { ...planned.cycle, offered_at: '2026-05-01T00:00:00.500Z' }
  const now = '2026-05-01T00:00:00.900Z'
  const again = line.decidePlan({ ...planned, cycle: offered }, { ...CONTACT, now })
  assert.is(again.machine.planned_at, now, 'it was offered a boot since')
})

test('who armed a machine is on its record', () => {
  assert.equal(put(FLASH).armed_by, BY)
  const system = line.parseUpsert(FLASH, null, { mac: MAC, by: { ...BY, actor: 'system' } })
  assert.is(system.ok && system.value.armed_by, null)
})

test('actions say what they did', () => {
  const { lock, flash } = line.actions
  const locked = lock?.apply(put(FLASH), null, BY)
  assert.ok(locked?.ok)
  assert.equal(
    locked.value.events.map(({ kind, summary }) => [kind, summary]),
    [['machine.lock', `${MAC} was locked`]],
  )
  assert.equal(flash?.apply(locked.value.machine, null, BY).ok, false)
  assert.is(flash?.scope, 'flash')
})

const KEPT_CONTACT = {
  now: '2026-05-01T00:00:00.000Z',
  baseUrl: 'http://10.0.0.1:8080',
  ip: '10.0.0.2',
  bearer: null,
  query: {},
}

test('an answer is made anew when one of its inputs is another one', () => {
  const keep = createKeptAnswers<number>()
  let made = 0
  const ask = (...inputs: readonly unknown[]) => keep(MAC, inputs, () => ++made)
  const object = {}
  assert.is(ask('a', object), 1)
  assert.is(ask('a', object), 1)
  assert.is(ask('b', object), 2)
  assert.is(ask('b', {}), 3)
  assert.is(ask('b'), 4)
  assert.is(ask('b', undefined), 5)
})

test('a plan and a script follow record, settings, catalog and address', () => {
  const site = { image: entryOf(REF), once: false }
  const kept = createMachineLine({
    findImage: () => site.image,
    findTemplate: () => null,
    sets: () => X86_SETS,
    settings: () => ({ ...PXE_RULES, boot_disk_once_after_flash: site.once }),
    placeOf: () => null,
    hasRun: () => false,
    bootKey: { sign: () => 's'.repeat(43), verify: () => true },
    uploadKey: { sign: () => 'u'.repeat(43) },
    cacheUrl: () => 'http://127.0.0.1:8081',
  })
  const machine: Machine = {
    ...createMachine(MAC, 'flasher-flash-always', KEPT_CONTACT.now),
    bty_image_ref: REF,
    target_disk_serial: 'S1',
    known_disks: [diskOf('S1')],
  }
  const plan = () => kept.decidePlan(machine, KEPT_CONTACT).plan
  const first = plan()
  assert.is(plan(), first, 'nothing has changed')
  const renamed: CatalogEntry = { ...site.image, name: 'another.img.zst' }
  site.image = renamed
  assert.is(plan()['name'], 'another.img.zst')
  site.once = true
  assert.is(plan()['register_uefi_boot'], true)
  const other = { ...machine, target_disk_serial: 'S2', known_disks: null }
  assert.is(kept.decidePlan(other, KEPT_CONTACT).plan['target_disk_serial'], 'S2')
  assert.is(kept.decidePlan({ ...machine, locked: true }, KEPT_CONTACT).mode, 'exit')

  const disk = { ...machine, boot_mode: 'ipxe-exit' } as const
  const script = (drive: string) =>
    kept.decideBoot({ ...disk, sanboot_drive: drive }, KEPT_CONTACT).script
  assert.match(script('0x80'), '--drive 0x80')
  assert.match(script('0x81'), '--drive 0x81')
  assert.match(
    kept.decideBoot({ ...machine, locked: true }, KEPT_CONTACT).script,
    'mode flasher-flash-always',
  )
})

test.run()
