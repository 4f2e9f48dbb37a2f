import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  isBackupDue,
  isBackupId,
  nextBackupId,
  planBackupPruning,
  readBackupTime,
  sortBackups,
} from '../../../runtime/core/state/backup.ts'
import { parseManifest, renderManifest } from '../../../runtime/core/state/backup-manifest.ts'

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
  assert.equal(planBackupPruning(ids, 3), [ID, '2025-01-01T00-00-00Z'])
  assert.equal(planBackupPruning(ids, 0).length, 4)
})

const DAILY = { enabled: true, cadence: 'daily', retention: 7 } as const
const never = { succeededAt: null, triedAt: null }
const DUE: readonly (readonly [string, Parameters<typeof isBackupDue>, boolean])[] = [
  ['never made', [DAILY, never, NOW], true],
  ['switched off', [{ ...DAILY, enabled: false }, never, NOW], false],
  ['by hand only', [{ ...DAILY, cadence: 'manual' }, never, NOW], false],
  ['an hour ago', [DAILY, { succeededAt: NOW - HOUR, triedAt: null }, NOW], false],
  ['a day ago', [DAILY, { succeededAt: NOW - DAY, triedAt: null }, NOW], true],
  ['a month ago, missed since', [DAILY, { succeededAt: NOW - 30 * DAY, triedAt: null }, NOW], true],
  [
    'weekly, a day ago',
    [{ ...DAILY, cadence: 'weekly' }, { succeededAt: NOW - DAY, triedAt: null }, NOW],
    false,
  ],
  [
    'weekly, a week ago',
    [{ ...DAILY, cadence: 'weekly' }, { succeededAt: NOW - 7 * DAY, triedAt: null }, NOW],
    true,
  ],
  ['failed a minute ago', [DAILY, { succeededAt: null, triedAt: NOW - 60_000 }, NOW], false],
  ['failed an hour ago', [DAILY, { succeededAt: null, triedAt: NOW - HOUR }, NOW], true],
  ['a little in the future', [DAILY, { succeededAt: NOW + HOUR, triedAt: null }, NOW], false],
  ['far in the future', [DAILY, { succeededAt: NOW + 400 * DAY, triedAt: null }, NOW], true],
  ['tried in the future', [DAILY, { succeededAt: null, triedAt: NOW + DAY }, NOW], true],
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
