/** Each word of docs/words.md means one thing in code; what still differs is listed and may only become less. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readTexts } from './support/arrows.ts'
import { listNames, listTypes, wordsOf } from './support/identifiers.ts'
import { LEFT, LEFT_TYPES, PROMISED } from './support/words-left.ts'

interface Rule {
  /** Where the word keeps its meaning. */
  readonly home: RegExp
  /** Whether a name uses the word for something else, away from its home. */
  isOther(name: string, words: readonly string[]): boolean
}
const has = (word: string) => (_name: string, words: readonly string[]) =>
  words.includes(word) || words.includes(`${word}s`)
const NOWHERE = /^$/

/** The names of the wire, of columns, files and commands stay as they are: they have `_`, or are texts. */
const RULES: Readonly<Record<string, Rule>> = {
  // `LiveBoot` is the boot of the live system; `live` alone and at the end says less.
  live: { home: NOWHERE, isOther: (name) => /^live$|Live$/.test(name) },
  line: {
    home: NOWHERE,
    isOther: (name) => /^kernelLine|[a-z]?KernelLine|^(?:is)?[Ii]nLine$|^onLine$/.test(name),
  },
  frame: {
    home: /^runtime\/(?:engine|cache|library)\/|^runtime\/kit\/foundation\/(?:json\/|zstd)/,
    isOther: has('frame'),
  },
  feed: { home: NOWHERE, isOther: has('feed') },
  look: { home: NOWHERE, isOther: has('look') },
  note: { home: NOWHERE, isOther: (name) => /^note[A-Z]/.test(name) },
  place: { home: NOWHERE, isOther: has('place') },
  offer: { home: NOWHERE, isOther: (name) => /^offers?$|^offer[A-Z]/.test(name) },
}

const texts = readTexts(['runtime/**/*.ts'])
const namesOf = new Map([...texts].map(([file, text]) => [file, listNames(text)]))
const promised: ReadonlySet<string> = new Set(PROMISED)
const test = suite('vocabulary')

/** `file: name` of each name that uses a word for something else. */
const findOther = ({ home, isOther }: Rule) =>
  [...namesOf].flatMap(([file, names]) =>
    home.test(file)
      ? []
      : [...names]
          .filter((name) => !promised.has(name) && isOther(name, wordsOf(name)))
          .map((name) => ({ file, name })),
  )

for (const [word, rule] of Object.entries(RULES)) {
  test(`${word} has no new meaning, and what was renamed has left the list`, () => {
    const names = LEFT[word] ?? []
    const found = findOther(rule)
    const left: ReadonlySet<string> = new Set(names)
    const added = found.filter(({ name }) => !left.has(name))
    assert.equal(
      added.map(({ file, name }) => `${file}: ${name}`),
      [],
      'docs/words.md says which word to use',
    )
    const there = new Set(found.map(({ name }) => name))
    assert.equal(
      names.filter((name) => !there.has(name)),
      [],
      'take these out of test/support/words-left.ts',
    )
  })
}

test('what is left to rename is left of a word that has a rule', () => {
  assert.equal(
    Object.keys(LEFT).filter((word) => !(word in RULES)),
    [],
  )
})

/** The release lines have twins on purpose. */
const sideOf = (file: string) =>
  file.replace(/^runtime\/server\/(?:current|earlier)\//, 'runtime/server/*/')

test('a type name is declared once', () => {
  // What the library exports has the names that its users know; some are those of what lies below.
  const own = [...texts].filter(([file]) => !file.startsWith('runtime/library/'))
  const declared = own.flatMap(([file, text]) =>
    listTypes(text).map((name) => ({ name, file: sideOf(file) })),
  )
  const repeated = [...Map.groupBy(declared, ({ name }) => name)]
    .filter(([, places]) => new Set(places.map(({ file }) => file)).size > 1)
    .map(([name]) => name)
  assert.equal(repeated.toSorted(), LEFT_TYPES.toSorted(), 'give each its own name')
})

test.run()
