/** What a person reads stands in the table of texts: the wizard and the prompts have no such literals. */
import { globSync, readFileSync } from 'node:fs'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { listLiterals } from '../../support/literals.ts'

const FILES = [
  'runtime/flasher/wizard/**/*.ts',
  'runtime/flasher/order/{remote*,first-boot-fetcher,run-reporter}.ts',
  'runtime/flasher/order/rules/{plan,flash-choice,wizard-start}.ts',
  'runtime/flasher/live-system/{console-viewer,live,live-console}.ts',
  'runtime/kit/terminal/prompt/*.ts',
  'runtime/flasher/text/{bar,progress}.ts',
]
/** The command line's help, from which documents and completion are generated, is not translated. */
const HELP_TABLE = 'runtime/flasher/wizard/options.ts'
/** The table of the prompts themselves. */
const PROMPTS = 'runtime/kit/terminal/prompt/texts.ts'

/** Texts that no person reads on a screen, or that are typed. */
const JUSTIFIED: ReadonlySet<string> = new Set([
  // Names of errors.
  'ExitPromptError',
  'AbortPromptError',
  // A word that may be typed in place of its letter.
  'local only',
  // Marks in the kernel's log, which tests and operators search for.
  'entered v',
  'exiting v',
  'inventory posted; rebooting',
  'auto-flash starting',
  'capture starting',
  'capture complete; rebooting',
  'flash complete; rebooting',
  // Headings in the log of a failure, which the server keeps.
  '--- the last lines on the screen',
  '--- the last lines of the kernel',
])

/** Several words, or one that begins like a title. */
const isForPeople = (text: string) =>
  (/\S\s+\S/.test(text) && /\p{L}/u.test(text)) || /(?<!\p{L})\p{Lu}\p{Ll}/u.test(text)

const test = suite('literals of the wizard')

test('literals are found in code, in templates and in what stands in them', () => {
  const source = `import { a } from 'not this'
// nor 'this one'
const b = /['"\`]/.test('one') ? \`two \${c({ d: 'three' })} \${\`four\`} and\\n\` : "it's five"`
  assert.equal(
    listLiterals(source).map(({ line, text }) => [line, text.trim()]),
    [
      [3, 'one'],
      [3, 'three'],
      [3, 'four'],
      [3, 'two   and'],
      [3, "it's five"],
    ],
  )
})

test('no text for people stands outside the table', () => {
  const files = globSync(FILES).filter((file) => file !== HELP_TABLE && file !== PROMPTS)
  assert.ok(files.length > 30, `${files.length}`)
  const found = files.flatMap((file) =>
    listLiterals(readFileSync(file, 'utf8'))
      .filter(({ text }) => isForPeople(text))
      .map(({ line, text }) => ({ at: `${file}:${line}`, text: text.trim() })),
  )
  assert.equal(
    found.filter(({ text }) => !JUSTIFIED.has(text)),
    [],
  )
  const texts = new Set(found.map(({ text }) => text))
  assert.equal(
    [...JUSTIFIED].filter((text) => !texts.has(text)),
    [],
    'no longer there',
  )
})

test.run()
