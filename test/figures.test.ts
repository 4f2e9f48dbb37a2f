/** Each figure of the documentation is that of the code, that of a record, or one that somebody vouches for. */
import { readFileSync } from 'node:fs'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { numberIn } from './support/documents/constants.ts'
import { EXAMPLES } from './support/documents/examples.ts'
import { listFigures, listWrongNumbers } from './support/documents/figures.ts'
import { checkLimits, compareFigures } from './support/documents/held-figures.ts'
import { listHeldPages, readByHand } from './support/documents/held-pages.ts'
import { LIMITS } from './support/documents/limits.ts'
import { hasNeighbour, isName, PREFERRED } from './support/documents/names.ts'
import { listWrongScreens, readScreens } from './support/documents/screens.ts'
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
    'New figures that the code knows: a row in test/support/documents/limits.toml. Others, and those that are gone: pnpm docs:figures, which says more.'
  assert.equal(unheld.slice(0, MOST), [], `${unheld.length} figures. ${advice}`)
})

test('lists are numbered one by one', () => {
  assert.equal(
    pages.flatMap(({ page, text }) => listWrongNumbers(text).map((wrong) => `${page}: ${wrong}`)),
    [],
  )
})

test('screens are those that were recorded', () => {
  const screens = readScreens()
  const wrong = pages.flatMap(({ text }) => listWrongScreens(text, screens))
  assert.equal(wrong, [])
  const [[name = '', screen = ''] = []] = screens
  const page = (text: string) =>
    `<!-- screen: ${name} -->\n\n\`\`\`text\n${text}\n\`\`\`\n\n<!-- end -->`
  assert.equal(listWrongScreens(page(screen), screens), [])
  assert.equal(listWrongScreens(page(`${screen}1`), screens), [name])
})

test('names are those of the code, of a release, and of examples; one wrong digit makes none out of another', () => {
  const files = 'flasher-usbboot-pc-x86_64-v*.iso flasher_0.1.0_amd64.deb mkosi.conf.d/30-live.conf'
  for (const name of files.split(' ')) assert.ok(isName(name), name)
  assert.not.ok(isName('flasher-usbboot-pc-x86_65-v*.iso'))
  assert.not.ok(isName('mkosi.conf.d/31-live.conf'))
  assert.ok(isName('http://192.0.2.10:8080/boot/'))
  assert.not.ok(isName('http://192.0.2.11:8080/boot/'))
  assert.not.ok(isName('30s'))
  const examples = EXAMPLES.flatMap((names) => names.split(' '))
  const near = [...examples, ...PREFERRED].flatMap((name) =>
    [...name.matchAll(/\d/g)].flatMap(({ index }) =>
      [...'0123456789']
        .map((digit) => `${name.slice(0, index)}${digit}${name.slice(index + 1)}`)
        .filter((other) => other !== name && isName(other)),
    ),
  )
  assert.equal(near, [])
  assert.ok(hasNeighbour('ext3'))
})

test('a figure is a word with a digit, with its unit, and not what others hold', () => {
  assert.equal(phrases('waits 12\nseconds, SHA-256, `ext4`, `ext3`; 0x80 of 3 things'), [
    '12 seconds',
    'ext3',
    '0x80',
    '3',
  ])
  assert.equal(phrases('409 Conflict, 409 conflicts, 404 Conflict'), ['409', '404'])
  assert.equal(phrases('```nginx\n    keepalive 16;\n    keepalive 17;\n```\n'), ['17'])
  assert.equal(phrases('| a | 4 MiB |\n| 12 | b |'), ['4 MiB', '12'])
  assert.equal(phrases('[decision 38](decisions/0038-a.md), [12](decisions/0038-a.md)'), ['12'])
  assert.equal(phrases('1. first <!-- 3 -->\n2. second\n\n```diff\n+ 5\n```\n'), [])
  assert.equal(phrases('<!-- measured:x -->\n| 1 |\n<!-- /measured:x -->'), [])
  assert.equal(phrases('<!-- screen: x -->\n12\n<!-- end -->'), [])
  assert.is(listWrongNumbers('## 1. a\n## 1. b').length, 1)
  assert.is(listWrongNumbers('1. a\n3. b').length, 1)
})

test('a limit is found in digits and in words, and a wrong or lost one is reported', () => {
  const limit = { page: 'page.md', says: 'waits {} minutes', are: () => [10] }
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
  const held = { byHand, measured: readMeasured(), screens: readScreens() }
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
  const byList = planted.filter(({ found }) => found.size === 1 && found.has('list by hand'))
  assert.ok(byList.length < planted.length / 2, 'the list by hand is no proof')
})

test.run()
