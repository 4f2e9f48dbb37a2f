import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { findNamed, listSettings } from '../../../../runtime/kit/config/rules/setting.ts'
import { SETTING_GROUPS } from '../../../../runtime/kit/config/rules/setting-groups.ts'
import {
  describeFallback,
  describeValue,
  findTitle,
  translateRows,
} from '../../../../runtime/server/pages/settings/setting-texts.ts'
import { SETTING_TEXTS, SETTINGS } from '../../../../runtime/server/current/rules/settings.ts'
import { describeSettings } from '../../../../runtime/kit/config/rules/shown-setting.ts'

/** A language that lacks a setting, or a label of one, does not compile. */
const GERMAN = {
  max_flashes: {
    title: 'Gleichzeitige Flash-Vorgänge',
    help: 'So viele Maschinen schreiben zugleich; die anderen warten.',
    labels: { 0: 'Unbegrenzt' },
  },
  tokens: {
    title: 'Boot-Token',
    help: 'Ob Maschinen ihren Start nachweisen müssen.',
    labels: { off: 'Aus', prefer: 'Maschinen, die es können', require: 'Alle Maschinen' },
  },
} as const satisfies Pick<(typeof SETTING_TEXTS)['pxe'], 'max_flashes' | 'tokens'>

const test = suite('texts of settings')
const rows = listSettings(SETTINGS)

test('every setting has a title of its own, and a heading that is listed', () => {
  const topics = Object.values(SETTING_GROUPS).flatMap((group) => Object.keys(group.topics))
  assert.equal(
    rows.filter(({ row }) => !topics.includes(row.topic)),
    [],
  )
  assert.is(new Set(rows.map(({ row }) => row.title)).size, rows.length)
  assert.is(findTitle(SETTING_TEXTS, 'server.port'), 'Port')
  assert.is(findTitle(SETTING_TEXTS, 'no.such'), null)
  assert.is(findTitle(SETTING_TEXTS, 'constructor.name'), null)
})

test('the groups that the specification names are there', () => {
  const titles = Object.values(SETTING_GROUPS).map(({ title }) => title)
  assert.equal(titles, ['Identity', 'Network', 'Storage'])
})

test('each kind of field is in use, and each choice has words for all of its names', () => {
  const kinds = new Set(rows.map(({ row }) => row.field.as))
  for (const as of [
    'toggle',
    'choice',
    'number',
    'duration',
    'size',
    'text',
    'secret',
    'list',
  ] as const) {
    assert.ok(kinds.has(as), as)
  }
  for (const { row } of rows) {
    if (row.field.as === 'choice') assert.equal(Object.keys(row.labels), [...row.field.names])
    if (row.field.as === 'text') assert.is(row.parse(row.field.example).ok, true, row.title)
  }
})

test('values are shown for people', () => {
  for (const [name, value, text] of [
    ['metrics.open', true, 'On'],
    ['pxe.tokens', 'prefer', 'Machines that can'],
    ['pxe.max_flashes', 0, 'No limit'],
    ['pxe.max_flashes', 1200, '1200'],
    ['pxe.flash_silence', 1800, '30 minutes'],
    ['pxe.flash_silence', 86_400, '1 day'],
    ['pxe.flash_silence', 0, '0 seconds'],
    ['pxe.flash_silence', Infinity, 'Never'],
    ['tuning.max_upload_bytes', 10 * 2 ** 30, '10 GiB'],
    ['cache.max_bytes', 0, 'As much as fits on the disk'],
    ['server.allowed_hosts', ['a', 'b'], 'a, b'],
    ['server.public_url', '', ''],
  ] as const) {
    const row = findNamed(SETTINGS, name)
    assert.is(row && describeValue(row, value), text, `${name} ${String(value)}`)
  }
  const [dir, url] = ['paths.boot_dir', 'server.public_url'].map((name) => {
    const row = findNamed(SETTINGS, name)
    return row && describeFallback(row)
  })
  assert.equal([dir, url], ['<paths.state_dir>/boot', 'none'])
})

test('a language is typed from the table', () => {
  assert.equal(Object.keys(GERMAN.tokens.labels), Object.keys(SETTINGS.pxe.tokens.labels))
  const shown = describeSettings(SETTINGS, {}, new Map(), [])
  const titles = translateRows(shown, { pxe: GERMAN }).map(({ setting }) => setting.title)
  assert.ok(titles.includes('Boot-Token'))
  assert.ok(titles.includes('Port'), 'a setting without a translation keeps its own words')
})

test.run()
