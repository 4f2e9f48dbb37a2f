import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  type ConfigLayer,
  keepStarted,
  parseSettings,
  renderProblem,
} from '#kit/config/rules/settings-parser.ts'
import {
  bytes,
  duration,
  hosts,
  siteCaches,
  toggle,
  wholeNumber,
} from '#kit/config/rules/setting-kinds.ts'
import { settingOf, type SettingsTable } from '#kit/config/rules/setting.ts'
import { parseToml } from '#kit/config/rules/toml.ts'

const setting = settingOf('flasher-web')
const called = { title: 'Called', topic: 'limits', help: 'It helps.' } as const

const TABLE = {
  server: {
    port: setting({ ...called, kind: wholeNumber(1, 65_535), fallback: 8080, restart: true }),
    hosts: setting({ ...called, kind: hosts, fallback: [] }),
    quick: setting({ ...called, kind: toggle, fallback: false, env: 'FLASHER_QUICK' }),
  },
  pxe: {
    age: setting({ ...called, kind: duration, fallback: 60 }),
    most: setting({ ...called, kind: bytes, fallback: 0 }),
  },
} as const satisfies SettingsTable

function layer(path: string, text: string): ConfigLayer {
  const parsed = parseToml(text)
  if (!parsed.ok) throw new Error(parsed.refusal.message)
  return { path, text, values: parsed.value }
}

const read = (
  layers: readonly ConfigLayer[],
  env: Readonly<Record<string, string>> = {},
  saved: Readonly<Record<string, string>> = {},
) => parseSettings(TABLE, { env, saved, layers }, { 'old.*': 'gone', 'server.older': null })

const test = suite('parseSettings')

test('a variable wins over a page, a page over files, the first file over the next', () => {
  const files = [
    layer('/a', '[server]\nport = 1\n'),
    layer('/b', '[server]\nport = 2\nquick = true\n'),
  ]
  const both = read(files)
  assert.is(both.settings.server.port, 1)
  assert.is(both.settings.server.quick, true)
  assert.equal(both.origins.get('server.port'), { by: 'file', path: '/a' })
  assert.equal(both.origins.get('server.quick'), { by: 'file', path: '/b' })
  assert.equal(both.origins.get('pxe.age'), { by: 'default' })
  const saved = read(files, {}, { 'server.port': '3' })
  assert.is(saved.settings.server.port, 3)
  assert.equal(saved.origins.get('server.port'), { by: 'settings-page' })
  const env = read(files, { FLASHER_SERVER_PORT: '4' }, { 'server.port': '3' })
  assert.is(env.settings.server.port, 4)
  const variable = 'FLASHER_SERVER_PORT'
  assert.equal(env.origins.get('server.port'), { by: 'environment', variable })
})

test('an empty variable is none, and a special name counts beside the regular one', () => {
  assert.is(read([], { FLASHER_SERVER_PORT: '  ' }).settings.server.port, 8080)
  assert.is(read([], { FLASHER_QUICK: 'yes' }).settings.server.quick, true)
  assert.is(read([], { FLASHER_SERVER_QUICK: 'on' }).settings.server.quick, true)
  const both = read([], { FLASHER_QUICK: '0', FLASHER_SERVER_QUICK: '1' })
  assert.is(both.settings.server.quick, false)
})

const problemsOf = (...given: Parameters<typeof read>) => read(...given).problems.map(renderProblem)

test('what is wrong is named with its file and line, or its variable', () => {
  assert.equal(problemsOf([layer('/a', '\n[server]\n# p\nport = "80"\n')]), [
    '/a:4: server.port must be a whole number from 1 to 65535, not "80"',
  ])
  assert.equal(problemsOf([], { FLASHER_SERVER_PORT: 'http' }), [
    'FLASHER_SERVER_PORT: server.port must be a whole number from 1 to 65535, not "http"',
  ])
  assert.is(read([layer('/a', '[server]\nport = 0\n')]).settings.server.port, 8080)
})

test('what is wrong in a file that something stronger overrules is a warning', () => {
  const { problems } = read([layer('/a', '[server]\nport = "x"\n')], { FLASHER_SERVER_PORT: '1' })
  const words = '/a:2: server.port must be a whole number from 1 to 65535, not "x" (overridden)'
  assert.equal(problems.map(renderProblem), [words])
  assert.is(problems[0]?.level, 'warning')
})

test('a page that saved nonsense keeps no server from starting', () => {
  const { problems, settings } = read([], {}, { 'server.port': 'x' })
  assert.is(settings.server.port, 8080)
  assert.equal(
    problems.map(({ level }) => level),
    ['warning'],
  )
})

test('unknown names are warnings with a guess', () => {
  const text = '[server]\nprot = 1\nolder = 1\n[old]\na = 1\n[serve]\nx = 1\n'
  const { problems } = read([layer('/a', text)], {
    FLASHER_PXE_AEG: '1',
    FLASHER_CONFIG_FILE: '/a',
  })
  assert.equal(problems.map(renderProblem), [
    '/a:2: no such setting: server.prot; did you mean port?',
    '/a:5: old.a: gone',
    '/a:6: no such setting: [serve]; did you mean server?',
    'FLASHER_PXE_AEG: no such setting; did you mean FLASHER_PXE_AGE?',
  ])
  assert.ok(problems.every(({ level }) => level === 'warning'))
})

test('spans, sizes and lists in the spellings of files and variables', () => {
  const rows = [
    ['0', 0],
    ['90s', 90],
    ['15m', 900],
    ['24h', 86_400],
    ['2w', 1_209_600],
    ['never', Infinity],
  ] as const
  for (const [text, seconds] of rows) {
    assert.is(read([], { FLASHER_PXE_AGE: text }).settings.pxe.age, seconds, text)
    assert.is(read([layer('/a', `[pxe]\nage = "${text}"\n`)]).settings.pxe.age, seconds, text)
  }
  assert.is(read([layer('/a', '[pxe]\nage = 5\n')]).settings.pxe.age, 5)
  assert.is(read([], { FLASHER_PXE_MOST: '1.5 GiB' }).settings.pxe.most, 1_610_612_736)
  assert.is(read([], { FLASHER_PXE_MOST: '7TB' }).settings.pxe.most, 7e12)
  const env = { FLASHER_SERVER_HOSTS: 'a.example, 10.0.0.1' }
  assert.equal(read([], env).settings.server.hosts, ['a.example', '10.0.0.1'])
  for (const text of ['-1', '1.5h', 'soon', '1e3', '99999999999', '500ms', '2ws', '1hs']) {
    assert.is(problemsOf([], { FLASHER_PXE_AGE: text }).length, 1, text)
  }
})

test('a running program keeps what needs a restart, and says so', () => {
  const started = read([]).settings
  const next = read([], { FLASHER_SERVER_PORT: '1', FLASHER_PXE_AGE: '5' }).settings
  const { settings, pending } = keepStarted(TABLE, next, started)
  assert.is(settings.server.port, 8080)
  assert.is(settings.pxe.age, 5)
  assert.equal(pending, ['server.port'])
})

const accepts = (text: string) => siteCaches.schema.safeParse(siteCaches.fromText(text)).success

for (const text of [
  'http://10.1.0.5:8081',
  'https://cache.example/images 10.1.0.0/24',
  'http://10.1.0.5:8081 10.1.0.0/24; fd00::/8;10.9.9.9',
  'http://10.1.0.5:8081 rack a; Site-B_2.1',
  'http://10.1.0.5:8081 rack a\nhttp://10.1.0.6:8081',
]) {
  test(`accepts ${JSON.stringify(text)}`, () => assert.ok(accepts(text)))
}

for (const text of [
  'rack a',
  'ftp://10.1.0.5',
  'http://user:word@10.1.0.5',
  'http://10.1.0.5?x=1',
  'http://10.1.0.5:8081 10.1.0.0/33',
  'http://10.1.0.5:8081 rack a;;rack b',
  'http://10.1.0.5:8081 <script>',
]) {
  test(`refuses ${JSON.stringify(text)}`, () => assert.not(accepts(text)))
}

test('a field has one a line, as a file has one an entry', () => {
  const two = ['http://a:1 10.0.0.0/8; rack a', 'http://b:1']
  assert.is(siteCaches.toField?.(two), two.join('\n'))
  assert.equal(siteCaches.fromText(two.join('\n')), two)
})

test.run()
