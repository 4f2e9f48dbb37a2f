/** One word per thing, and the field's own: words that were replaced stay out of code, pages and documents. */
import { globSync, readFileSync, lstatSync } from 'node:fs'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { findComments, hasNoSubject } from './support/comments.ts'

/** What must not stand anywhere, and what to write instead. */
const NAMES: readonly (readonly [RegExp, string])[] = [
  [/\b\w+Wish\b/g, '…Options, …Request'],
  [/\b[A-Z]\w*Parts\b/g, '…Dependencies'],
  [/\bMOST_[A-Z]/g, 'MAX_…'],
  [/\b(?:[A-Z]\w*)?Desk\b|\b(?:create|open|make)\w*Desk\b/g, '…Context, …Fixture'],
  [/\b(?:[A-Z]\w*)?World\b/g, 'ProcessEnvironment'],
  [/\bServerNo\b/g, 'Rejection'],
  [/\bFlights\b/g, 'TaskGroup'],
  [/\b(?:Script|Plan)Turn\b|\bTurn<|\bcreateMeeting\b/g, 'Transition, recordContact'],
]
const PHRASES: readonly (readonly [RegExp, string])[] = [
  [/\b(?:is|are|was|were|be|been|being) told\b/gi, 'is notified, learns, gets, receives'],
  [/\bto be had\b|\bcannot be had\b|\bcan be had\b/gi, 'is available, is unavailable'],
  [/\b(?:says?|said) no\b/gi, 'refuses, is refused'],
  [
    /\ba (?:yes|no) (?:is|holds|has)\b|\bkinds? of no\b|\bexpected no\b/gi,
    'a refusal, the response',
  ],
  [/\bthe way out\b/gi, 'hint, how to fix it'],
  [/\ball the same\b/gi, 'anyway'],
  [/\bis not heard of\b/gi, 'has stopped responding'],
  [/\bfor (?:you|it|them) to tell\b/gi, 'to report'],
]

const OWN = 'test/words.test.ts'
/** The changelog and the decisions tell of the past in the words of its time. */
const isLookedAt = (file: string) =>
  file !== OWN &&
  !file.startsWith('docs/decisions/') &&
  !file.startsWith('docs/pictures/') &&
  lstatSync(file).isFile()

const CODE = ['{appliance,build,runtime,test}/**/*.{ts,mjs,js,css}']
const TEXTS = ['docs/**/*.{md,1}', '*.md', 'overlays/**']

/** `file:line: word (write: …)` of each hit. */
function find(
  patterns: readonly string[],
  rules: readonly (readonly [RegExp, string])[],
): readonly string[] {
  const files = patterns.flatMap((pattern) => globSync(pattern)).filter(isLookedAt)
  return files.toSorted().flatMap((file) =>
    readFileSync(file, 'utf8')
      .split('\n')
      .flatMap((line, at) =>
        rules.flatMap(([rule, instead]) =>
          [...line.matchAll(rule)].map(
            ([word]) => `${file}:${at + 1}: ${word} (write: ${instead})`,
          ),
        ),
      ),
  )
}

const test = suite('words')

test('identifiers are named in the words of the field', () => {
  assert.equal(find(CODE, NAMES), [])
})

test('texts and comments are plain', () => {
  assert.equal(find([...CODE, ...TEXTS], PHRASES), [])
})

/** Comments that still begin without a subject: at most so many, and whoever rewrites some lowers it. */
const MAX_WITHOUT_SUBJECT = 2

test('comments are sentences with a subject', () => {
  const comments = findComments('.', ['{appliance,build,runtime,test}/**/*.ts'])
  const bad = comments.filter(({ text }) => hasNoSubject(text))
  assert.ok(comments.length > 5000)
  assert.ok(
    bad.length <= MAX_WITHOUT_SUBJECT,
    `${bad.length} begin without one: node test/support/comments.ts --list`,
  )
})

test.run()
