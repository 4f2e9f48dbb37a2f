import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { findNamed, listSettings, SETTING_GROUPS } from '#kit/config/rules/setting.ts'
import { describeFallback, describeValue } from '#server/pages/settings/setting-fields.ts'
import { SETTINGS } from '#server/current/settings/rules/settings.ts'

const test = suite('texts of settings')
const rows = listSettings(SETTINGS)

test('every setting has a title of its own, and a heading that is listed', () => {
  const topics = Object.values(SETTING_GROUPS).flatMap((group) => Object.keys(group.topics))
  const unlisted = rows.filter(({ row: { topic } }) => topic === null || !topics.includes(topic))
  // Another page changes them.
  assert.equal(
    unlisted.map(({ section, key }) => `${section}.${key}`),
    ['admin.password', 'admin.password_hash'],
  )
  const front = rows.filter(({ row }) => row.front !== null)
  assert.is(front.length, 15)
  assert.is(new Set(rows.map(({ row }) => row.title)).size, rows.length)
  assert.is(findNamed(SETTINGS, 'server.port')?.title, 'Port')
  assert.is(findNamed(SETTINGS, 'no.such'), null)
  assert.is(findNamed(SETTINGS, 'constructor.name'), null)
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

test.run()
