/** Bodies of PUT /machines/{mac}: defaults, rules and limits, field by field. */
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { applyUpsert } from '#server/current/machines/rules/operator-edits.ts'
import { splitLabels, toWire, type Machine } from '#server/current/machines/rules/machine.ts'
import { nameOf } from '#server/current/view/machine-view.ts'
import { lacksTarget, parseUpsert } from '#server/current/machines/rules/upsert.ts'
import { MAC, REF } from '#test/support/server/machine-fixture.ts'

const test = suite('MachineUpsert')
const NOW = '2026-05-01T00:00:00.000Z'

test('what is left out has its default', () => {
  assert.equal(parseUpsert({}), {
    ok: true,
    value: {
      bty_image_ref: null,
      labels: [],
      boot_mode: 'ipxe-exit',
      sanboot_drive: null,
      target_disk_serial: null,
    },
  })
})

const GOOD = [
  { bty_image_ref: REF },
  { labels: Array.from({ length: 16 }, (_, at) => `l${at}`) },
  { labels: ['a'.repeat(64), 'Rack 1.A_b-c', '0'] },
  { name: null },
  { name: '' },
  { name: 'x'.repeat(64) },
  { name: '編成十二号機 – “nuc” <b>&amp;' },
  { name: '\u{1f5a5}'.repeat(64) },
  { sanboot_drive: '0x8' },
  { sanboot_drive: '0xFf' },
  { target_disk_serial: 'S'.repeat(128) },
  { target_disk_serial: null, bty_image_ref: null, sanboot_drive: null },
]
for (const body of GOOD) {
  test(`takes ${JSON.stringify(body).slice(0, 60)}`, () => {
    assert.ok(parseUpsert(body).ok)
  })
}

const BAD = [
  [null, ''],
  [[], ''],
  ['{}', ''],
  [{ mac: 'x' }, ''],
  [{ __proto__: null, saw_flasher_boot: true }, ''],
  [{ bty_image_ref: REF.toUpperCase() }, 'bty_image_ref'],
  [{ bty_image_ref: REF.slice(1) }, 'bty_image_ref'],
  [{ bty_image_ref: `${REF}\n` }, 'bty_image_ref'],
  [{ bty_image_ref: '' }, 'bty_image_ref'],
  [{ labels: Array.from({ length: 17 }, () => 'same') }, 'labels'],
  [{ labels: null }, 'labels'],
  [{ labels: ['ok', ''] }, 'labels.1'],
  [{ labels: ['a'.repeat(65)] }, 'labels.0'],
  [{ labels: [' a'] }, 'labels.0'],
  [{ labels: ['-a'] }, 'labels.0'],
  [{ labels: ['<b>'] }, 'labels.0'],
  [{ labels: ['a\n'] }, 'labels.0'],
  [{ labels: ['é'] }, 'labels.0'],
  [{ labels: [1] }, 'labels.0'],
  [{ name: 'x'.repeat(65) }, 'name'],
  [{ name: 'a\nb' }, 'name'],
  [{ name: 'a\u001b[31m' }, 'name'],
  [{ name: 'a\u202egnp.exe' }, 'name'],
  [{ name: 'a\u2066b' }, 'name'],
  [{ name: 'a\u200bb' }, 'name'],
  [{ name: 'a\u200db' }, 'name'],
  [{ name: '\u200d👩' }, 'name'],
  [{ name: '👩\u200d\u200d💻' }, 'name'],
  [{ name: '\ud800' }, 'name'],
  [{ name: 7 }, 'name'],
  [{ boot_mode: 'tui' }, 'boot_mode'],
  [{ boot_mode: null }, 'boot_mode'],
  [{ sanboot_drive: '0x' }, 'sanboot_drive'],
  [{ sanboot_drive: '0x123' }, 'sanboot_drive'],
  [{ sanboot_drive: '80' }, 'sanboot_drive'],
  [{ sanboot_drive: '0x80 && reboot' }, 'sanboot_drive'],
  [{ target_disk_serial: 'S'.repeat(129) }, 'target_disk_serial'],
  [{ target_disk_serial: 5 }, 'target_disk_serial'],
] as const
for (const [body, field] of BAD) {
  test(`refuses ${JSON.stringify(body)?.slice(0, 60)} and names ${field || 'the body'}`, () => {
    const parsed = parseUpsert(body)
    assert.ok(!parsed.ok)
    const named = parsed.refusal.map(({ loc }) => loc.join('.'))
    assert.ok(named.includes(field === '' ? 'body' : `body.${field}`), named.join())
  })
}

test('every wrong field is named', () => {
  const parsed = parseUpsert({ boot_mode: 'x', sanboot_drive: 'y', labels: 'z' })
  assert.ok(!parsed.ok)
  assert.equal(parsed.refusal.map(({ loc }) => loc[1]).toSorted(), [
    'boot_mode',
    'labels',
    'sanboot_drive',
  ])
})

test('labels are a set, in the order of code points', () => {
  const upsert = parseUpsert({ labels: ['b', 'a 1', 'A', 'b', 'B'] })
  assert.ok(upsert.ok)
  const machine = applyUpsert(null, MAC, upsert.value, NOW)
  assert.ok(machine.ok)
  assert.equal(machine.value.labels, ['A', 'B', 'a 1', 'b'])
})

test('an empty serial is none; the form refuses a flash mode without one', () => {
  const parsed = parseUpsert({ boot_mode: 'flasher-flash-once', target_disk_serial: ' ' })
  assert.ok(parsed.ok)
  assert.is(parsed.value.target_disk_serial, null)
  assert.ok(lacksTarget(parsed.value))
  assert.not.ok(lacksTarget({ ...parsed.value, boot_mode: 'ipxe-exit' }))
})

const put = (before: Machine | null, body: object) => {
  const parsed = parseUpsert(body)
  assert.ok(parsed.ok)
  const machine = applyUpsert(before, MAC, parsed.value, NOW)
  assert.ok(machine.ok)
  return machine.value
}

const say = (body: object) => {
  const parsed = parseUpsert(body)
  return parsed.ok ? '' : parsed.refusal.map(({ msg }) => msg).join('; ')
}

test('a name is composed and trimmed; left out it stays, null and blanks clear it', () => {
  const named = put(null, { name: '  Cafe\u0301 1 ' })
  assert.is(named.name, 'Caf\u00e9 1')
  const kept = put(named, { boot_mode: 'flasher-tui' })
  assert.is(kept.name, 'Caf\u00e9 1')
  assert.is(put(kept, { name: null }).name, null)
  assert.is(put(kept, { name: ' \u3000 ' }).name, null)
  // A name is no intent: what was flashed stays flashed.
  assert.is(put(named, { name: 'other' }).cycle, named.cycle)
})

test('a name may hold zero-width joiners where they join', () => {
  for (const name of ['👩\u200d💻 lab', '👩🏽\u200d🔧', '🏴\ufe0f\u200d☠', 'क्\u200dष', 'ه\u200d']) {
    assert.is(put(null, { name }).name, name)
  }
})

test('the refusal of a name says which character, and how long it is', () => {
  assert.match(say({ name: 'a\u202eb' }), 'U+202E')
  assert.match(say({ name: 'x'.repeat(70) }), 'at most 64 characters, not 70')
})

test('the refusal of a label says which character, and what is allowed', () => {
  const rule = 'use the letters A to Z, digits, spaces and . _ - and begin with a letter or a digit'
  assert.is(say({ labels: ['ok', 'büro'] }), `a label cannot hold "ü": ${rule}`)
  assert.is(say({ labels: ['-a'] }), `a label cannot begin with "-": ${rule}`)
  assert.is(say({ labels: [' a'] }), `a label cannot begin with a space: ${rule}`)
  assert.is(say({ labels: ['a\u202e'] }), `a label cannot hold U+202E: ${rule}`)
  assert.match(say({ labels: ['x'.repeat(70)] }), 'at most 64 characters, not 70')
})

test('a machine is shown by its name, else its host name, else its MAC', () => {
  const shown = { mac: MAC, name: 'Rack 1', hostname: 'nuc-7' }
  assert.is(nameOf(shown), 'Rack 1')
  assert.is(nameOf({ ...shown, name: null }), 'nuc-7')
  assert.is(nameOf({ ...shown, name: null, hostname: null }), MAC)
})

test('a form’s labels: between commas, each once', () => {
  assert.equal(splitLabels(' Rack 1, , rack 1,b,B ,'), ['Rack 1', 'b'])
})

test('a machine that was only put has no sightings, and the fields in their order', () => {
  const upsert = parseUpsert({})
  assert.ok(upsert.ok)
  const machine = applyUpsert(null, MAC, upsert.value, NOW)
  assert.ok(machine.ok)
  assert.equal(Object.entries(toWire(machine.value)), [
    ['mac', MAC],
    ['bty_image_ref', null],
    ['labels', []],
    ['discovered_at', null],
    ['last_seen_at', null],
    ['last_seen_ip', null],
    ['boot_mode', 'ipxe-exit'],
    ['sanboot_drive', null],
    ['last_flashed_at', null],
    ['known_disks', null],
    ['known_disks_at', null],
    ['target_disk_serial', null],
    ['created_at', NOW],
    ['updated_at', NOW],
    ['name', null],
    ['first_boot', null],
    ['secure_boot', null],
    ['bmc_address', null],
    ['capture', null],
  ])
})

test('any JSON is taken or refused with named fields', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 3 }), (body) => {
      const parsed = parseUpsert(body)
      if (!parsed.ok) assert.ok(parsed.refusal.length > 0)
    }),
    { numRuns: 2000 },
  )
})

test.run()
