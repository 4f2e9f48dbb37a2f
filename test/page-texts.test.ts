/** The texts of pages stand in tables, one per language: no page has English of its own. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readTexts } from './support/arrows.ts'
import { listLiterals, type Literal } from './support/literals.ts'

const PAGES = [
  'runtime/server/*/pages/**/*.ts',
  'runtime/cache/pages/*.ts',
  'runtime/cache/routes/pages.ts',
  'runtime/kit/web/ui/*.ts',
]

/** A value in a template. */
const VALUE = '\u0000'

/** What literals are given to that no page shows, or that is no text. */
const ELSEWHERE = [
  // Programs get the same refusals, and faults are for logs.
  /\brefuse\(\d+, (?:`.*`, \{\s+hint: )?$/,
  /\bTypeError\($/,
  // Events are stored in the words of their time.
  /\bsummary(?:: | = )$/,
  /\b\w+\.failed', $/,
  // The `error` of a refusal is for scripts; its `text` is what the page shows.
  /\berror(?:: | = )$/,
  /(?:class="\$\{.*|\bclassName: (?:.* \? )?)$/,
] as const

/** Names and notations, the same in every language. */
const NAMES = [
  /^flasher$/,
  /^[\w-]+(?:[.:]\w+)+$/,
  /^[A-Z]+(?:_[A-Z]+)+$/,
  // Keys of the keyboard.
  /^(?:Enter|Esc|j k)$/,
  // Markup of constants, headers, cookies, triggers of htmx.
  /^</,
  /^public, max-age=|; Path=|^flasher:news, every |^every /,
  // Commands for a shell.
  /^(?:cp|npx|read|curl) /,
  // Exact sizes are formatted like all sizes.
  new RegExp(`^${VALUE} (?:${VALUE} |\\(${VALUE} )?bytes`),
] as const

/** Kinds of events and their summaries, which are stored. */
const EVENTS = ['Upstream settings changed', 'Backup settings changed']

/** Words, or one that begins with a capital letter. */
const isText = (text: string) =>
  /\p{L}{2,}[,.;:!?…]* [^ ]*\p{L}/u.test(text) || /^\p{Lu}\p{Ll}+…?[.!?]?$/u.test(text)

const SPOKEN = /\b(?:aria-label|title|placeholder|data-label|label|alt)="([^"]*)"/g

/** What people read of a template: the text between its tags, and that of some attributes. */
const listShown = (markup: string): readonly string[] =>
  [
    ...markup.replaceAll(/<(code)\b[^>]*>[^]*?<\/\1>/g, VALUE).split(/<[^>]*>/),
    ...[...markup.matchAll(SPOKEN)].map(([, text = '']) => text),
  ].filter((text) => /\p{L}{2}/u.test(text))

function listTexts({ pieces, before }: Literal): readonly string[] {
  if (ELSEWHERE.some((place) => place.test(before))) return []
  const text = pieces.join(VALUE)
  const texts = /\bhtml$/.test(before) ? listShown(text) : isText(text) ? [text] : []
  return texts
    .map((each) => each.trim())
    .filter((each) => !NAMES.some((name) => name.test(each)) && !EVENTS.includes(each))
}

const findTexts = (source: string): readonly (readonly [number, string])[] =>
  listLiterals(source).flatMap((literal) =>
    listTexts(literal).map((text) => [literal.line, text] as const),
  )

const test = suite('texts of pages')

test('a page takes its texts from the tables', () => {
  const found = [...readTexts(PAGES)].flatMap(([file, source]) =>
    findTexts(source).map(([line, text]) => `${file}:${line}: ${text.replaceAll(VALUE, '…')}`),
  )
  assert.equal(found, [])
})

test('texts are found wherever a page can have them', () => {
  const found = findTexts(
    [
      "import { a } from 'a word.ts' // 'not this'",
      "const title = 'Machines'",
      "const path = '/ui/machines', words = /'two words'/",
      'throw refuse(404, `no such ${page}`)',
      'const body = html`<p class="dim small">Found ${count} of ${html`<b>all</b>`}</p>',
      '  <input aria-label="Name" name="name" /> <code>a command</code> ${fill(t.text, { name })}`',
      'const row = `${count} machines wait`',
    ].join('\n'),
  )
  assert.equal(
    found.map(([line, text]) => `${line}: ${text.replaceAll(VALUE, '…')}`),
    ['2: Machines', '5: all', '5: Found … of …', '5: Name', '7: … machines wait'],
  )
})

test.run()
