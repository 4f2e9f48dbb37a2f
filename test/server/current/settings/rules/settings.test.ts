import { globSync, readFileSync } from 'node:fs'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { listSettings, renderText, variablesOf } from '#kit/config/rules/setting.ts'
import { valueOf } from '#kit/config/rules/settings-parser.ts'
import {
  parseSettings,
  renderReference,
  SETTINGS,
} from '#server/current/settings/rules/settings.ts'

/** Another value than the default for each sort of value, by what is wanted. */
const OTHERS: readonly (readonly [wants: RegExp, text: string])[] = [
  [/^a whole number from (\d+)/, '100'],
  [/^true or false/, 'true'],
  [/^one of off/, 'require'],
  [/^one of always/, 'off'],
  [/^one of daily/, 'weekly'],
  [/^one of debug/, 'error'],
  [/^an absolute path/, '/srv/x'],
  [/^an address or a host name/, '192.0.2.9'],
  [/^an address like http/, 'http://cache.example:99'],
  [/^a list of host names/, 'a.example, b.example'],
  [/^a list of keys/, `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${'B'.repeat(43)} two words`],
  [/^a list of groups and their labels/, 'team; rack a; b, all; *'],
  [/^an address on https/, 'https://login.example.org/realms/lab/'],
  [/^a list of (?:values|names of claims)/, 'one, another value'],
  [/^a list of addresses and ranges/, '10.0.0.0/8, ::1'],
  [/^a list of up to 16 networks/, '10.8.0.0/24, 10.9.0.0/24'],
  [/^a list of up to 4 addresses/, 'http://10.1.0.5:8080, https://b.example'],
  [/^a repository like/, 'oras://registry.lab/captures'],
  [/^a region/, 'eu-north-7'],
  [/^a list of caches/, 'http://10.1.0.5:8081 10.1.0.0/24; rack a, http://10.1.0.6:8081'],
  [/^seconds, a span/, '7m'],
  [/^a span of at (?:least 1m|most 1h)/, '7m'],
  [/^bytes, or a size/, '12345'],
  [/^owner\/name/, 'acme/tools'],
  [/^a tag/, 'v9.9.9'],
  [/^a region/, 'eu-west-1'],
  [/^a span from 1m to 7d/, '7m'],
  [/^a time zone/, 'Europe/Copenhagen'],
  [/^a table/, '{"bucket":"b"}'],
  [/^a hash/, '$scrypt$ln=14,r=8,p=5$c2FsdHNhbHQ$c2FsdHNhbHRzYWx0c2FsdA'],
  [/^one line of text/, 'words'],
]

const rows = listSettings(SETTINGS)
const other = (wants: string, fallback: unknown) => {
  const text = OTHERS.find(([pattern]) => pattern.test(wants))?.[1]
  if (text === undefined) throw new Error(`no other value for: ${wants}`)
  return fallback === true ? 'false' : text
}

const test = suite('settings of the current line')

test('every default is a value of its own setting', () => {
  for (const { section, key, row } of rows) {
    assert.is(row.parse(row.fallback).ok, true, `${section}.${key}`)
  }
})

test('every setting can be said by a variable', () => {
  for (const { section, key, row } of rows) {
    const text = other(row.wants, row.fallback)
    for (const variable of variablesOf(section, key, row)) {
      const { settings, problems, origins } = parseSettings({
        env: { [variable]: text },
        saved: {},
        layers: [],
      })
      assert.equal(problems, [], variable)
      assert.equal(origins.get(`${section}.${key}`), { by: 'environment', variable })
      const toml = row.toToml(valueOf(settings, section, key))
      assert.ok(toml !== null, variable)
      assert.not.equal(valueOf(settings, section, key), row.fallback, variable)
    }
  }
})

test('every setting can be said by a file, and a form gives the same value back', () => {
  for (const { section, key, row } of rows) {
    const parsed = row.parse(row.fromText(other(row.wants, row.fallback)))
    assert.ok(parsed.ok, `${section}.${key}`)
    if (!parsed.ok) continue
    const toml = row.toToml(parsed.value)
    const values = { [section]: { [key]: toml } }
    const { settings, problems } = parseSettings({
      env: {},
      saved: {},
      layers: [{ path: '/a', text: '', values }],
    })
    assert.equal(problems, [], `${section}.${key}`)
    assert.equal(valueOf(settings, section, key), parsed.value)
    if (toml !== null) assert.equal(row.parse(row.fromText(renderText(toml))), parsed)
  }
})

test('every setting refuses what it is not, and a secret is not in the refusal', () => {
  for (const { section, key, row } of rows) {
    const refused = row.parse({ 'hunter2\u001b[31m': [{}] })
    assert.is(refused.ok, false, `${section}.${key}`)
    if (refused.ok) continue
    assert.not.match(refused.refusal, '\u001b')
    if (row.isSecret) assert.not.match(refused.refusal, 'hunter2')
  }
})

test('a password in an address is refused, and is not in the refusal', () => {
  for (const { section, key, row } of rows) {
    const refused = row.parse('http://admin:hunter2@cache:3000')
    if (!refused.ok) assert.not.match(refused.refusal, 'hunter2', `${section}.${key}`)
  }
})

test('the variables of the specification have the names and defaults that it gives', () => {
  const { settings } = parseSettings({ env: {}, saved: {}, layers: [] })
  assert.is(settings.server.host, '0.0.0.0')
  assert.is(settings.server.port, 8080)
  assert.is(settings.withcache.url, '')
  const named = rows.flatMap(({ section, key, row }) => variablesOf(section, key, row))
  for (const variable of [
    'FLASHER_PATHS_STATE_DIR',
    'FLASHER_PATHS_BOOT_DIR',
    'FLASHER_BOOT_RELEASE_REPO',
    'FLASHER_SERVER_HOST',
    'FLASHER_SERVER_PORT',
    'FLASHER_ADMIN_PASSWORD',
    'FLASHER_WITHCACHE_URL',
    'FLASHER_RELEASES_BASE_URL',
  ]) {
    assert.ok(named.includes(variable), variable)
  }
})

test('settings of the wizard are refused in files, with a hint', () => {
  const values = { wizard: { image_root: '/images' } }
  const layers = [{ path: '/a', text: '', values }]
  const { problems } = parseSettings({ env: { FLASHER_IMAGE_ROOT: '/b' }, saved: {}, layers })
  assert.is(problems.length, 1)
  assert.match(problems[0]?.message ?? '', /^wizard\.image_root: .*FLASHER_IMAGE_ROOT/)
})

test('whatever takes a password, key or token is a secret', () => {
  const open = rows.filter(
    ({ key, row }) =>
      /password(?!_file)|secret(?!(?:_key)?_file)|token(?!s)|options/.test(key) && !row.isSecret,
  )
  assert.equal(
    open.map(({ section, key }) => `${section}.${key}`),
    [],
  )
})

test('docs/settings.md is fresh: pnpm docs:settings makes it', () => {
  assert.is(readFileSync('docs/settings.md', 'utf8'), renderReference())
})

test('every setting is in it, in its section', () => {
  const text = renderReference()
  for (const { section, key } of listSettings(SETTINGS)) {
    const part = text.split('\n## ').find((each) => each.startsWith(`\`[${section}]\``)) ?? ''
    assert.match(part, `- **\`${key}\`**`)
  }
})

test('every variable that a program reads is in it', () => {
  const text = renderReference()
  const files = globSync('{runtime,appliance}/**/*.ts').map((path) => readFileSync(path, 'utf8'))
  const names = files.flatMap((file) => [...file.matchAll(/\benv\['(FLASHER_(?!TEST_)\w+)'\]/g)])
  assert.ok(names.length > 10)
  for (const [, name] of names) assert.match(text, `\`${name}\``)
})

test.run()
