import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  isBackupDue,
  isBackupId,
  nextBackupId,
  numberOf,
  orderBackups,
  planBackupPruning,
  readBackupTime,
  sortBackups,
  parseManifest,
  renderManifest,
} from '#fleet/backup/rules/backup.ts'

const test = suite('backup')
const ID = '2026-11-21T06-55-53Z'
const HOUR = 3_600_000
const DAY = 24 * HOUR
const NOW = Date.parse('2026-11-21T06:55:53Z')

test('an id is the time it began, numbered where two begin in one second', () => {
  const taken = new Set<string>()
  for (const wanted of [ID, `${ID}-1`, `${ID}-2`]) {
    const id = nextBackupId('2026-11-21T06:55:53.193Z', (one) => taken.has(one))
    assert.is(id, wanted)
    assert.ok(isBackupId(id))
    assert.is(readBackupTime(id), '2026-11-21T06:55:53Z')
    taken.add(id)
  }
})

test('nothing else is an id', () => {
  for (const text of [
    '',
    '..',
    `${ID}/..`,
    `${ID}-`,
    `${ID}-x`,
    ` ${ID}`,
    `${ID}\n`,
    '2026-11-21',
  ]) {
    assert.not(isBackupId(text), text)
    assert.is(readBackupTime(text), null)
  }
})

test('the newest come first, by number within a second', () => {
  const ids = [`${ID}-9`, `${ID}-10`, 'x', ID, '2025-01-01T00-00-00Z', '2027-01-01T00-00-00Z']
  assert.equal(sortBackups(ids), [
    '2027-01-01T00-00-00Z',
    `${ID}-10`,
    `${ID}-9`,
    ID,
    '2025-01-01T00-00-00Z',
  ])
})

test('the newest stay, and one that was made just now', () => {
  const ids = ['e', 'd', 'c', 'b', 'a']
  assert.equal(planBackupPruning(ids, 3, null), ['b', 'a'])
  assert.equal(planBackupPruning(ids, 3, 'e'), ['b', 'a'])
  assert.equal(planBackupPruning(ids, 3, 'a'), ['c', 'b'])
  assert.equal(planBackupPruning(ids, 0, 'a').length, 4)
  assert.equal(planBackupPruning(ids, 9, 'a'), [])
})

const idOf = (year: number, n = 0) => nextBackupId(`${year}-01-01T00:00:0${n}.000Z`, () => false)

test('their number orders them, whatever the clock said', () => {
  const made = [2026, 2056, 2006, 2027].map((year, index) => ({
    backup_id: idOf(year),
    manifest: { number: index + 1 },
  }))
  const ordered = orderBackups(made, Date.parse('2027-01-02T00:00:00Z'))
  assert.equal(ordered.map(numberOf), [4, 3, 2, 1])
})

test('one without a number has its place by its time, and none where that lies ahead', () => {
  const counted = [2024, 2026].map((year, index) => ({
    backup_id: idOf(year),
    manifest: { number: index + 1 },
  }))
  const others = [2023, 2025, 2056].map((year) => ({ backup_id: idOf(year), manifest: null }))
  const ordered = orderBackups([...others, ...counted], Date.parse('2026-06-01T00:00:00Z'))
  assert.equal(
    ordered.map(({ backup_id }) => backup_id),
    [2026, 2025, 2024, 2023, 2056].map((year) => idOf(year)),
  )
})

test('whatever the clock does, the last ones made are the ones kept', () => {
  const years = fc.array(fc.integer({ min: 1990, max: 2090 }), { minLength: 1, maxLength: 12 })
  fc.assert(
    fc.property(years, fc.integer({ min: 1, max: 5 }), (clock, keep) => {
      let stored: Parameters<typeof numberOf>[0][] = []
      for (const [index, year] of clock.entries()) {
        const at = `${year}-01-01T00:00:00.000Z`
        const backup_id = nextBackupId(at, (id) => stored.some((one) => one.backup_id === id))
        stored.push({ backup_id, manifest: { number: index + 1 } })
        const ids = orderBackups(stored, Date.parse(at)).map((one) => one.backup_id)
        const gone = planBackupPruning(ids, keep, backup_id)
        stored = stored.filter((one) => !gone.includes(one.backup_id))
      }
      const wanted = clock.map((_, index) => index + 1).slice(-keep)
      assert.equal(stored.map(numberOf), wanted)
    }),
  )
})

const DAILY = { enabled: true, cadence: 'daily', retention: 7 } as const
const NEVER = { succeededAt: null, sinceSuccess: null, sinceTry: null }
const at = (succeededAt: number) => ({ ...NEVER, succeededAt })
const tried = (sinceTry: number) => ({ ...NEVER, sinceTry })
const DUE: readonly (readonly [string, Parameters<typeof isBackupDue>, boolean])[] = [
  ['never made', [DAILY, NEVER, NOW], true],
  ['switched off', [{ ...DAILY, enabled: false }, NEVER, NOW], false],
  ['by hand only', [{ ...DAILY, cadence: 'manual' }, NEVER, NOW], false],
  ['an hour ago', [DAILY, at(NOW - HOUR), NOW], false],
  ['a day ago', [DAILY, at(NOW - DAY), NOW], true],
  ['a month ago, missed since', [DAILY, at(NOW - 30 * DAY), NOW], true],
  ['weekly, a day ago', [{ ...DAILY, cadence: 'weekly' }, at(NOW - DAY), NOW], false],
  ['weekly, a week ago', [{ ...DAILY, cadence: 'weekly' }, at(NOW - 7 * DAY), NOW], true],
  ['failed a minute ago', [DAILY, tried(60_000), NOW], false],
  ['failed an hour ago', [DAILY, tried(HOUR), NOW], true],
  ['a little in the future', [DAILY, at(NOW + HOUR), NOW], false],
  ['far in the future', [DAILY, at(NOW + 400 * DAY), NOW], true],
  ['by us a day ago, then set back', [DAILY, { ...at(NOW), sinceSuccess: DAY }, NOW], true],
  [
    'by us an hour ago, then set back for years',
    [DAILY, { ...at(NOW + 400 * DAY), sinceSuccess: HOUR }, NOW],
    false,
  ],
]
for (const [name, given, isDue] of DUE) {
  test(`due: ${name}`, () => {
    assert.is(isBackupDue(...given), isDue)
  })
}

const MANIFEST = {
  version: 1,
  backup_id: ID,
  created_at: '2026-11-21T06:55:53.000Z',
  release: '1.2.3',
  line: 'current',
  trigger: 'manual',
  machines: 3,
  number: 7,
  files: [
    {
      name: 'state.db',
      bytes: 9,
      sha256: 'a'.repeat(64),
      pieces: [{ name: 'state.db.000000', bytes: 9, sha256: 'b'.repeat(64) }],
    },
  ],
} as const

test('a manifest is read as it was written, for its own backup only', () => {
  const text = renderManifest({
    ...MANIFEST,
    files: structuredClone([...MANIFEST.files]).map((file) => ({
      ...file,
      pieces: [...file.pieces],
    })),
  })
  assert.equal(parseManifest(text, ID), { ok: true, value: MANIFEST })
  assert.not(parseManifest(text, `${ID}-1`).ok)
})

test('no text makes a manifest fail other than by a refusal, nor name a file elsewhere', () => {
  const hostile = JSON.stringify(MANIFEST).replace('state.db.000000', '../../etc/passwd')
  assert.not(parseManifest(hostile, ID).ok)
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
      assert.not(parseManifest(text, ID).ok)
    }),
  )
})

test.run()
