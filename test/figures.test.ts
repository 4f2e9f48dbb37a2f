/** Each figure of the documentation is that of the code, that of a record, or one that somebody vouches for. */
import { readFileSync } from 'node:fs'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { numberIn } from './support/documents/constants.ts'
import { listFigures, listWrongNumbers, NAMES } from './support/documents/figures.ts'
import { checkLimits, compareFigures } from './support/documents/held-figures.ts'
import { listHeldPages, readByHand } from './support/documents/held-pages.ts'
import { LIMITS } from './support/documents/limits.ts'
import { compareMeasured } from './support/documents/measured.ts'
import { readMeasured } from './support/documents/measured-records.ts'
import { findMistakes, MADE_PAGES } from './support/documents/page-check.ts'
import { plantWrongDigits } from './support/documents/wrong-digits.ts'

const byHand = readByHand()
const pages = listHeldPages().map((page) => ({ page, text: readFileSync(page, 'utf8') }))
const phrases = (text: string) => listFigures(text).map(({ phrase }) => phrase)

/** A failure shows so many, that its advice is seen. */
const MOST = 12

const test = suite('figures')

test('limits are those of the code', () => {
  assert.equal(
    pages.flatMap(({ page, text }) => checkLimits(page, text, LIMITS).wrong),
    [],
  )
})

test('what was measured is what was recorded', () => {
  const wrong = [...readMeasured()].flatMap(([name, record]) =>
    compareMeasured(name, record, readFileSync(record.page, 'utf8')),
  )
  assert.equal(wrong, [])
})

test('each other figure is in the list of those held by hand', () => {
  const unheld = pages.flatMap(({ page, text }) => {
    const { extra, gone } = compareFigures(page, checkLimits(page, text, LIMITS).rest, byHand)
    return [
      ...extra.map(({ phrase, line }) => `${page}:${line}: “${phrase}” is held by nothing`),
      ...gone.map((phrase) => `${page}: “${phrase}” is listed, and no longer said`),
    ]
  })
  const advice =
    'New figures that the code knows: a row in test/support/documents/limits.ts. Others, and those that are gone: pnpm docs:figures, which says more.'
  assert.equal(unheld.slice(0, MOST), [], `${unheld.length} figures. ${advice}`)
})

test('lists are numbered one by one', () => {
  assert.equal(
    pages.flatMap(({ page, text }) => listWrongNumbers(text).map((wrong) => `${page}: ${wrong}`)),
    [],
  )
})

test('one wrong digit makes no other name out of a name', () => {
  for (const name of NAMES) {
    for (const { index } of name.matchAll(/\d/g)) {
      for (let digit = 0; digit < 10; digit += 1) {
        const other = `${name.slice(0, index)}${digit}${name.slice(index + 1)}`
        assert.ok(other === name || !NAMES.has(other), `${name} and ${other}`)
      }
    }
  }
})

test('a figure is a word with a digit, with its unit, and not what others hold', () => {
  assert.equal(phrases('waits 12\nseconds, SHA-256, `ext4`; 0x80 of 3 things'), [
    '12 seconds',
    'ext4',
    '0x80',
    '3',
  ])
  assert.equal(phrases('| a | 4 MiB |\n| 12 | b |'), ['4 MiB', '12'])
  assert.equal(phrases('[decision 38](decisions/0038-a.md), [12](decisions/0038-a.md)'), ['12'])
  assert.equal(phrases('1. first <!-- 3 -->\n2. second\n\n```diff\n+ 5\n```\n'), [])
  assert.equal(phrases('<!-- measured:x -->\n| 1 |\n<!-- /measured:x -->'), [])
  assert.is(phrases('<!-- screen: x -->\n12\n<!-- end -->').length, 1)
  assert.is(listWrongNumbers('1. a\n3. b').length, 1)
})

test('a limit is found in digits and in words, and a wrong or lost one is reported', () => {
  const limit = { page: 'page.md', says: 'waits {} minutes', is: () => 10 }
  const wrong = (text: string) => checkLimits('page.md', text, [limit]).wrong.length
  assert.is(wrong('It waits ten\nminutes.'), 0)
  assert.is(wrong('It waits 10 minutes.'), 0)
  assert.is(wrong('It waits 11 minutes.'), 1)
  assert.is(wrong('It waits.'), 1)
  assert.is(phrases(checkLimits('page.md', 'waits 10 minutes', [limit]).rest).length, 0)
})

test('constants are read with their products and powers', () => {
  assert.is(numberIn('runtime/kit/web/answers/limits.ts', 'json'), 2 ** 20)
  assert.is(numberIn('runtime/fleet/run/run-logs.ts', 'MAX_IN_ALL'), 2 ** 28)
  assert.throws(() => numberIn('runtime/fleet/run/run-logs.ts', 'NONE'), /has no NONE/)
})

test('pages are as they should be, and each of some wrong digits is found', () => {
  const held = { byHand, measured: readMeasured() }
  const wrong = [
    ...pages,
    ...MADE_PAGES.map((page) => ({ page, text: readFileSync(page, 'utf8') })),
  ].filter(({ page, text }) => findMistakes(page, text, held).size > 0)
  assert.equal(
    wrong.map(({ page }) => page),
    [],
  )
  const planted = plantWrongDigits(24, 7)
  const missed = planted.filter(({ found }) => found.size === 0)
  assert.equal(missed, [], 'pnpm docs:drift plants 200 of them')
})

test.run()
