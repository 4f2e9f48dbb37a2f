/** The rules as the shared server uses them: what is stored, answered and put on record. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createMachineLine } from '../../../runtime/lines/current/machine-line.ts'
import type { Contact } from '../../../runtime/web/fleet/transition.ts'
import {
  diskOf,
  entryOf,
  MAC,
  PXE_RULES,
  REF,
  X86_SETS,
} from '../../support/server/machine-fixture.ts'

const test = suite('machine line')

const CONTACT: Contact = {
  now: '2026-05-01T00:00:00.000Z',
  baseUrl: 'http://10.0.0.1:8080',
  ip: '10.0.0.2',
  bearer: null,
  query: {},
}
const line = createMachineLine({
  findImage: (ref) => (ref === REF ? entryOf(ref) : null),
  sets: () => X86_SETS,
  settings: () => PXE_RULES,
  gate: { placeOf: () => null, noteOffer: () => {}, notePlanned: () => {}, release: () => {} },
  bootKey: { sign: () => 's'.repeat(43), verify: () => true },
})
const FLASH = { boot_mode: 'flasher-flash-once', bty_image_ref: REF, target_disk_serial: 'S1' }
const kindsOf = (turn: { readonly notes: readonly { readonly kind: string }[] }) =>
  turn.notes.map(({ kind }) => kind)

function put(body: unknown) {
  const made = line.parseUpsert(body, null, { mac: MAC, now: CONTACT.now })
  if (!made.ok) throw new Error(JSON.stringify(made.refusal))
  return made.value
}

test('a flash from script to done, each with its event', () => {
  const script = line.decideBoot(put(FLASH), { ...CONTACT, query: { buildarch: 'x86_64' } })
  assert.is(script.offer, 'flash')
  assert.match(script.script, /^#!ipxe\n# flasher: 52:54:00:12:34:56, mode flasher-flash-once\n/)
  assert.is(script.machine.arch, 'x86_64')
  assert.equal(kindsOf(script), ['netboot.pxe.offered'])
  const armed = line.afterBootFile(script.machine, 'vmlinuz', CONTACT)
  assert.equal(kindsOf(armed), ['netboot.flasher.armed'])
  const again = line.afterBootFile(armed.machine, 'initrd', CONTACT)
  assert.is(again.machine, armed.machine, 'nothing to store')
  assert.equal(kindsOf(again), [])
  const inventory = { disks: [diskOf('S1'), diskOf(null)], hardware: '{}' }
  const listed = line.afterInventory(armed.machine, inventory, CONTACT)
  assert.equal(listed.notes[0]?.details, { count: 2, serials: ['S1'], lshw: true })
  const plan = line.decidePlan(listed.machine, CONTACT)
  assert.equal([plan.mode, kindsOf(plan)], ['flash', ['netboot.pxe.plan']])
  const failed = line.afterFailure(plan.machine, 'why', CONTACT)
  assert.equal(failed.notes[0]?.details, { reason: 'why' })
  const done = line.afterFlash(plan.machine, CONTACT)
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
  const other = line.afterInventory(put(FLASH), { disks: [], hardware: null }, CONTACT).machine
  assert.equal(kindsOf(line.decidePlan(other, CONTACT)), [
    'netboot.pxe.plan',
    'netboot.plan.doubted',
  ])
})

test('whoever is not let in boots its own disk', () => {
  assert.match(line.renderExit(CONTACT), 'sanboot --no-describe --drive 0x80 || exit\n')
})

test('actions say what they did', () => {
  const { lock, flash } = line.actions
  const locked = lock?.apply(put(FLASH), null, CONTACT)
  assert.ok(locked?.ok)
  assert.equal(
    locked.value.notes.map(({ kind, summary }) => [kind, summary]),
    [['machine.lock', `${MAC} was locked`]],
  )
  assert.equal(flash?.apply(locked.value.machine, null, CONTACT).ok, false)
  assert.is(flash?.scope, 'flash')
})

test.run()
