/** Each row of the specifications has a test that is there, or a decision. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { SPECIFICATION_ROWS, SPECIFICATIONS } from './specification.ts'

const test = suite('rows of the specifications')
const ROOT = join(import.meta.dirname, '..')
const sources = new Map<string, string>()

function sourceOf(name: string): string | null {
  const path = join(import.meta.dirname, name)
  if (!sources.has(name)) {
    const text = existsSync(path) ? readFileSync(path, 'utf8').replaceAll(/\(\s+/g, '(') : ''
    // Some titles begin with the name of a row.
    sources.set(name, text + text.replaceAll(/\(`\$\{[^}]*\}:? ?/g, '(`'))
  }
  return sources.get(name) || null
}

/** A test begins so, whichever function of its file makes it; titles that are made in loops by a part of them. */
const holds = (source: string, title: string): boolean =>
  ["'", '"'].some((quote) => source.includes(`(${quote}${title}${quote}`)) ||
  ['`', '${'].some((end) => source.includes(`(\`${title}${end}`))

test('each names a test that is there, by its title', () => {
  const missing = SPECIFICATION_ROWS.flatMap((row) => {
    if (!('test' in row)) return []
    const source = sourceOf(row.test)
    if (source === null) return [`${row.section}, ${row.row}: no file ${row.test}`]
    const isTest = row.test.endsWith('.test.ts') && row.title.length > 5
    return isTest && holds(source, row.title) ? [] : [`${row.test} has no test "${row.title}"`]
  })
  assert.equal([...new Set(missing)], [])
})

test('each decision is there', () => {
  const missing = SPECIFICATION_ROWS.flatMap((row) =>
    'decision' in row && !existsSync(join(ROOT, row.decision)) ? [row.decision] : [],
  )
  assert.equal(missing, [])
})

test('no row is named twice', () => {
  for (const [line, rows] of Object.entries(SPECIFICATIONS)) {
    const names = rows.map(({ section, row }) => `${section}: ${row}`)
    const twice = names.filter((name, at) => names.indexOf(name) !== at)
    assert.equal(twice, [], line)
  }
})

test.run()
