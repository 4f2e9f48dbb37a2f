/** Answers that are kept: the same only while everything that is in them is the same. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { CatalogEntry } from '#engine/catalog/rules/catalog.ts'
import { createKeptAnswers, createMachineLine } from '#server/current/machine-line.ts'
import { createMachine, type Machine } from '#server/current/rules/machine.ts'
import {
  diskOf,
  entryOf,
  MAC,
  PXE_RULES,
  REF,
  X86_SETS,
} from '#test/support/server/machine-fixture.ts'

const test = suite('kept answers')

const CONTACT = {
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
  const line = createMachineLine({
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
    ...createMachine(MAC, 'flasher-flash-always', CONTACT.now),
    bty_image_ref: REF,
    target_disk_serial: 'S1',
    known_disks: [diskOf('S1')],
  }
  const plan = () => line.decidePlan(machine, CONTACT).plan
  const first = plan()
  assert.is(plan(), first, 'nothing has changed')
  const renamed: CatalogEntry = { ...site.image, name: 'another.img.zst' }
  site.image = renamed
  assert.is(plan()['name'], 'another.img.zst')
  site.once = true
  assert.is(plan()['register_uefi_boot'], true)
  const other = { ...machine, target_disk_serial: 'S2', known_disks: null }
  assert.is(line.decidePlan(other, CONTACT).plan['target_disk_serial'], 'S2')
  assert.is(line.decidePlan({ ...machine, locked: true }, CONTACT).mode, 'exit')

  const disk = { ...machine, boot_mode: 'ipxe-exit' } as const
  const script = (drive: string) =>
    line.decideBoot({ ...disk, sanboot_drive: drive }, CONTACT).script
  assert.match(script('0x80'), '--drive 0x80')
  assert.match(script('0x81'), '--drive 0x81')
  assert.match(
    line.decideBoot({ ...machine, locked: true }, CONTACT).script,
    'mode flasher-flash-always',
  )
})

test.run()
