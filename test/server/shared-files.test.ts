/** One configuration file serves all server programs: none of them complains about the sections of another. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseSettings as parseCache, SETTINGS as CACHE } from '#cache/rules/settings.ts'
import { listSettings, type SettingsTable, SECTIONS } from '#kit/config/rules/setting.ts'
import {
  parseSettings as parseCurrent,
  SETTINGS as CURRENT,
} from '#server/current/rules/settings.ts'
import {
  parseSettings as parseEarlier,
  SETTINGS as EARLIER,
} from '#server/earlier/rules/settings.ts'

const test = suite('files of all programs')

const PROGRAMS = [
  ['flasher-web', CURRENT, parseCurrent],
  ['the earlier line', EARLIER, parseEarlier],
  ['flasher-cache', CACHE, parseCache],
] as const
const TABLES: readonly SettingsTable[] = [CURRENT, EARLIER, CACHE]

test('every section of every program has its words', () => {
  const sections = new Set(TABLES.flatMap((table) => Object.keys(table)))
  assert.equal([...sections].toSorted(), Object.keys(SECTIONS).toSorted())
})

for (const [name, own, parse] of PROGRAMS) {
  test(`${name} knows the sections that are not its own, and its own keys`, () => {
    const foreign = TABLES.flatMap(listSettings).filter(
      ({ section }) => !Object.hasOwn(own, section),
    )
    const values = Object.groupBy(foreign, ({ section }) => section)
    const text = Object.keys(values).map((section) => `[${section}]\n`)
    const layer = {
      path: '/etc/flasher/flasher.toml',
      text: text.join(''),
      values: Object.fromEntries(
        Object.entries(values).map(([section, rows = []]) => [
          section,
          Object.fromEntries(rows.map(({ key, row }) => [key, row.toToml(row.fallback)])),
        ]),
      ),
    }
    assert.ok(foreign.length > 0)
    assert.equal(parse({ env: {}, saved: {}, layers: [layer] }).problems, [])
    const misspelt = {
      path: '/a',
      text: '[admin]\npasword = 1\n',
      values: { admin: { pasword: 1 } },
    }
    assert.is(parse({ env: {}, saved: {}, layers: [misspelt] }).problems.length, 1)
  })
}

test.run()
