/** pnpm docs:drift: puts wrong digits into the documentation, one at a time, and counts those that the tests' checks find. */
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { listHeldPages, readByHand } from './held-pages.ts'
import { readMeasured } from './measured-records.ts'
import { readScreens } from './screens.ts'
import { findMistakes, FINDERS, MADE_PAGES, type Finder } from './page-check.ts'

const KINDS = ['command', 'table', 'prose', 'shown'] as const
type Kind = (typeof KINDS)[number]

interface Place {
  readonly page: string
  /** Where the digit is in the text of the page. */
  readonly at: number
  readonly kind: Kind
}

export interface Planted extends Place {
  readonly line: number
  /** The line as it is with the wrong digit. */
  readonly shown: string
  readonly found: ReadonlySet<Finder>
}

/** What is not read, and what other tests hold: comments, targets of links, numbers of lists, diffs that are applied. */
const UNTOUCHED =
  /<!--[^]*?-->|\]\([^)\s]*\)|\[(?:decisions?[ /])?0*\d+(?=\]\()|^ *\d+\. |^ *```diff\n[^]*?^ *```$/gm

function listPlaces(page: string, text: string): readonly Place[] {
  const left = text.replaceAll(UNTOUCHED, (whole) => whole.replaceAll(/\d/g, '#'))
  const places: Place[] = []
  let language: string | null = null
  let start = 0
  for (const line of left.split('\n')) {
    const [, named] = /^ *```(\w*)$/.exec(line) ?? []
    if (named !== undefined) language = language === null ? named : null
    const kind = kindOf(line, language)
    for (const { index } of line.matchAll(/\d/g)) places.push({ page, at: start + index, kind })
    start += line.length + 1
  }
  return places
}

function kindOf(line: string, language: string | null): Kind {
  if (language === null) return line.startsWith('|') ? 'table' : 'prose'
  return language === 'sh' ? 'command' : 'shown'
}

/** A generator of numbers in [0, 1): the same seed gives the same ones (mulberry32). */
function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Puts `count` wrong digits into the pages, as many into each kind of place, and asks the checks about each. */
export function plantWrongDigits(count: number, seed: number): readonly Planted[] {
  const random = createRandom(seed)
  const texts = new Map(
    [...listHeldPages(), ...MADE_PAGES].map((page) => [page, readFileSync(page, 'utf8')]),
  )
  const held = { byHand: readByHand(), measured: readMeasured(), screens: readScreens() }
  const places = Map.groupBy(
    [...texts].flatMap(([page, text]) => listPlaces(page, text)),
    ({ kind }) => kind,
  )
  return Array.from({ length: count }, (_, index) => {
    const of = places.get(KINDS[index % KINDS.length] ?? 'prose') ?? []
    const place = of[Math.floor(random() * of.length)]
    if (place === undefined) throw new Error('the documentation has no digits')
    const text = texts.get(place.page) ?? ''
    const digit = (Number(text[place.at]) + 1 + Math.floor(random() * 9)) % 10
    const wrong = `${text.slice(0, place.at)}${digit}${text.slice(place.at + 1)}`
    const line = wrong.slice(0, place.at).split('\n').length
    const shown = (wrong.split('\n')[line - 1] ?? '').trim()
    return { ...place, line, shown, found: findMistakes(place.page, wrong, held) }
  })
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: { digits: { type: 'string', default: '200' }, seed: { type: 'string', default: '1' } },
  })
  const planted = plantWrongDigits(Number(values.digits), Number(values.seed))
  for (const { page, line, kind, shown, found } of planted) {
    const by = found.size === 0 ? 'NOT FOUND' : [...found].join(', ')
    console.log(`${by}: ${kind}, ${page}:${line}: ${shown.slice(0, 100)}`)
  }
  const found = planted.filter((one) => one.found.size > 0)
  console.log(
    `\nSeed ${values.seed}: ${found.length} of ${planted.length} wrong digits were found.`,
  )
  for (const finder of FINDERS) {
    const by = found.filter((one) => one.found.has(finder))
    const alone = by.filter((one) => one.found.size === 1)
    console.log(`  by ${finder}: ${by.length}, by nothing else: ${alone.length}`)
  }
  process.exitCode = found.length === planted.length ? 0 : 1
}
