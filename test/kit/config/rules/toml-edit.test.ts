import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import * as fc from 'fast-check'
import type { TomlValue } from '#kit/config/rules/setting.ts'
import {
  editToml,
  isSameToml,
  isTable,
  listStatements,
  locateTomlKey,
  locateTomlSection,
  parseToml,
} from '#kit/config/rules/toml.ts'

const test = suite('editToml')

function edit(text: string, value: TomlValue | null, key = 'port', section = 'server'): string {
  const edited = editToml(text, { section, key }, value)
  if (!edited.ok) throw new Error(edited.refusal.why)
  return edited.value
}

const ROWS: readonly (readonly [
  what: string,
  before: string,
  value: TomlValue | null,
  after: string,
])[] = [
  ['a comment behind', '[server]\nport = 1 # a\n', 2, '[server]\nport = 2 # a\n'],
  [
    'tabs and odd blanks',
    '[server]\n\t"port"\t =  1 \t # a  \n',
    2,
    '[server]\n\t"port"\t =  2 \t # a  \n',
  ],
  ['CRLF', '# a\r\n[server]\r\nport = 1\r\n', 2, '# a\r\n[server]\r\nport = 2\r\n'],
  ['mixed line ends', '[server]\nport = 1\r\na = 1\n', 2, '[server]\nport = 2\r\na = 1\n'],
  ['no line end', '[server]\nport = 1', 2, '[server]\nport = 2'],
  ['a byte order mark', '\uFEFF[server]\nport = 1\n', 2, '\uFEFF[server]\nport = 2\n'],
  ['a quoted header', '[ "server" ]  # s\nport = 1\n', 2, '[ "server" ]  # s\nport = 2\n'],
  ['a dotted key', 'server.port = 1\n[b]\nc = 1\n', 2, 'server.port = 2\n[b]\nc = 1\n'],
  ['an inline table', 'server = {a = 1 , port = 1} # s\n', 2, 'server = {a = 1 , port = 2} # s\n'],
  ['a literal string', "[server]\nport = 'a' # s\n", 'b', "[server]\nport = 'b' # s\n"],
  ['a # in the value', "[server]\nport = 'a  # b' \t # s\n", 'c', "[server]\nport = 'c' \t # s\n"],
  [
    'a new key',
    '[server]\na = 1 # a\n\n[b]\nc = 1\n',
    2,
    '[server]\na = 1 # a\nport = 2\n\n[b]\nc = 1\n',
  ],
  [
    'a new table',
    '[server]\na = 1\n',
    { b: 1, c: 'x' },
    '[server]\na = 1\nport = { b = 1, c = "x" }\n',
  ],
  ['a new section', '# a\n', 2, '# a\n\n[server]\nport = 2\n'],
  ['an empty file', '', 2, '[server]\nport = 2\n'],
  [
    'taking out',
    '[server]\n# on a\na = 1\n# on port\nport = 1 # p\n\n# b\nb = 1\n',
    null,
    '[server]\n# on a\na = 1\n# on port\n\n# b\nb = 1\n',
  ],
  ['taking the last out', '[server]\nport = 1\n# end\n', null, '[server]\n# end\n'],
  [
    'taking several lines out',
    "[server]\nport = '''a  \n# no comment\n'''\nb = 1\n",
    null,
    '[server]\nb = 1\n',
  ],
  ['taking what is not there', '[server]\na = 1  \n', null, '[server]\na = 1  \n'],
  ['the same again', '[server]\nport   =   1\n', 1, '[server]\nport   =   1\n'],
  [
    'a list',
    '[server]\nport = [\n  1, # one\n]\n',
    [1, 2],
    '[server]\nport = [\n  1, # one\n  2,\n]\n',
  ],
]

for (const [what, before, value, after] of ROWS) {
  test(what, () => assert.is(edit(before, value), after))
}

test('a list that its comments make uneditable is written anew', () => {
  const before = '[server]\nport = [ "a", # one\n "b" ] # p\nz = 1 # z\n'
  assert.is(edit(before, ['c']), '[server]\nport = [ "c" ] # p\nz = 1 # z\n')
})

test('what cannot be edited is refused with the reason', () => {
  const lone = editToml('', { section: 'server', key: 'port' }, '\ud800')
  assert.equal(lone, { ok: false, refusal: { why: 'too-unusual' } })
  const broken = editToml('[server]\nport = \n', { section: 'server', key: 'port' }, 1)
  assert.is(broken.ok, false)
  if (!broken.ok && broken.refusal.why === 'not-toml') {
    assert.equal([broken.refusal.problem.line, broken.refusal.problem.column], [2, 8])
  }
  for (const text of ['server = 1\n', '[[server]]\nport = 1\n']) {
    const refused = editToml(text, { section: 'server', key: 'port' }, 1)
    assert.equal(refused, { ok: false, refusal: { why: 'not-a-section' } })
  }
})

test('finds the line of a key and of a section', () => {
  const text = '# a\nx = 1\n[ server ] # s\na = """\nport = 5\n"""\n"port" = 1\n[b]\nport = 2\n'
  assert.is(locateTomlKey(text, { section: 'server', key: 'port' }), 7)
  assert.is(locateTomlKey(text, { section: 'b', key: 'port' }), 9)
  assert.is(locateTomlKey(text, { section: 'b', key: 'nothing' }), null)
  assert.is(locateTomlSection(text, 'server'), 3)
  assert.is(locateTomlSection(text, 'serve'), null)
  assert.is(locateTomlSection('[server\nport = ', 'server'), null)
})

/** One key and its value as people write them, with what stands around it. */
const blank = fc.constantFrom('', ' ', '  ', '\t')
const value = fc.constantFrom(
  '1',
  '0x1F',
  '1_000',
  '-7',
  '1.5',
  'true',
  '"a # b"',
  "'c\\d'",
  '"\\u00e9"',
  '[1, 2]',
  '[ ]',
  '[\n  1,  # one\n  2,\n]',
  '"""\nlong # no\n  line \\\n  on"""',
  "'''\nraw\n# no\n'''",
  '{ a = 1, b = "x" }',
  '1979-05-27T07:32:00Z',
  '07:32:00',
  'inf',
)
const name = fc.constantFrom('port', '"port"', 'host', "'host'", 'x-1', 'naïve', '"a b"', 'z')
const comment = fc.constantFrom('', ' # why', '\t# it\'s "so"', '   #', '  ')
const noise = fc.constantFrom('', '   ', '# a comment', '\t# [server]', '# port = 9')
const bare = (key: string) => key.replaceAll(/["']/g, '')

/** No name twice in a section: that would be no TOML. */
const section = (header: string) =>
  fc
    .uniqueArray(fc.tuple(name, blank, blank, value, comment, fc.array(noise, { maxLength: 2 })), {
      selector: ([key]) => bare(key),
      maxLength: 5,
    })
    .map((rows) => [
      header,
      ...rows.flatMap(([key, left, right, given, behind, above]) => [
        ...above,
        `${left}${key} =${right} ${given}${behind}`,
      ]),
    ])

const documents = fc
  .record({
    sections: fc.shuffledSubarray(['[server]', '[ b ]  # b', '["c"]', '[d.e]']),
    eol: fc.constantFrom('\n', '\r\n'),
    end: fc.constantFrom('', '\n', '\n\n  \n'),
    start: fc.constantFrom('', '\uFEFF', '# head\n\n'),
  })
  .chain(({ sections, eol, end, start }) =>
    fc
      .tuple(...sections.map(section))
      .map((parts) => `${start}${parts.map((lines) => lines.join('\n')).join('\n\n')}${end}`)
      .map((text) => text.replaceAll('\n', eol)),
  )

const wanted = fc.constantFrom<TomlValue | null>(
  null,
  1,
  -5,
  'plain',
  'with "quotes" and \\',
  "it's",
  '',
  true,
  ['a', 'b'],
  [],
  [80, 81],
  '# no comment',
)

test('any edit of any text changes that key and no other byte', () => {
  fc.assert(
    fc.property(
      documents,
      fc.constantFrom('port', 'host', 'new-key'),
      wanted,
      (text, key, next) => {
        const before = parseToml(text)
        if (!before.ok) return
        const edited = editToml(text, { section: 'server', key }, next)
        assert.ok(edited.ok, `refused: ${JSON.stringify(text)}`)
        if (!edited.ok) return
        const after = parseToml(edited.value)
        assert.ok(after.ok)
        if (!after.ok) return
        const [old, now] = [before.value, after.value].map((all) => ({ ...all }))
        const rest = (all: unknown) =>
          isTable(all) ? Object.entries(all).filter(([k]) => k !== key) : []
        const got = isTable(now?.['server']) ? now['server'][key] : undefined
        assert.ok(next === null ? got === undefined : isSameToml(got, next))
        assert.ok(
          isSameToml(
            Object.fromEntries(rest(old?.['server'])),
            Object.fromEntries(rest(now?.['server'])),
          ),
        )
        assert.ok(
          isElsewhereSame(text, edited.value, ['server', key]),
          `${JSON.stringify(text)} -> ${JSON.stringify(edited.value)}`,
        )
      },
    ),
    { numRuns: 1500 },
  )
})

/** All but the key's own lines is there as it was, and all of it where it had none. */
function isElsewhereSame(before: string, after: string, path: readonly string[]): boolean {
  const own = listStatements(before).find((each) => each.path.join('\0') === path.join('\0'))
  if (own !== undefined) {
    const [above, below] = [before.slice(0, own.start), before.slice(own.end)]
    return after.startsWith(above) && after.slice(above.length).endsWith(below)
  }
  return countSame(before, after) + countSame(reverse(before), reverse(after)) >= before.length
}

const reverse = (text: string) => text.split('').toReversed().join('')

function countSame(one: string, two: string): number {
  let count = 0
  while (count < one.length && one[count] === two[count]) count += 1
  return count
}

test.run()
