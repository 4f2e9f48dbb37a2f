/** The tables of the wizard's texts: complete in every language, and written alike. */
import { globSync } from 'node:fs'
import { basename } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  fill,
  pluralOf,
  type Placeholder,
  type PluralText,
} from '../../../runtime/kit/texts/text.ts'
import { ENGLISH } from '../../../runtime/flasher/texts/english.ts'
import {
  ENGLISH as PROMPTS_ENGLISH,
  PROMPT_TEXTS,
  type PromptTranslation,
} from '../../../runtime/kit/terminal/prompt/texts.ts'
import { listMalformed, listTexts, shapeOf } from '../../support/text-tables.ts'
import { WIZARD_TEXTS, type FlasherTranslation } from '../../../runtime/flasher/texts/texts.ts'

/** Every table beside the English one, too: each file exports one. */
const tables = await Promise.all(
  globSync('runtime/flasher/texts/*.ts')
    .filter((file) => basename(file) !== 'texts.ts')
    .map(async (file) => {
      const exported: object = await import(`../../../${file}`)
      const [table = {}]: readonly object[] = Object.values(exported)
      return { file, table }
    }),
)

/** The questions on terminals have a table of their own, beside them. */
const prompts = { file: 'runtime/kit/terminal/prompt/texts.ts', table: PROMPTS_ENGLISH }

const test = suite('texts of the wizard')

test('every language has the same texts with the same placeholders', () => {
  assert.ok(tables.length > 0)
  const english = shapeOf(ENGLISH)
  for (const { file, table } of [...tables, { file: 'in use', table: WIZARD_TEXTS }]) {
    const shape = shapeOf(table)
    const missing = english.filter((text) => !shape.includes(text))
    const unknown = shape.filter((text) => !english.includes(text))
    assert.equal({ file, missing, unknown }, { file, missing: [], unknown: [] })
  }
})

test('no text is empty, has superfluous blanks, or a brace that is no placeholder', () => {
  for (const { file, table } of [...tables, prompts]) {
    assert.equal(listMalformed(table), [], file)
  }
})

test('a whole sentence ends like one', () => {
  const bad = listTexts([ENGLISH, PROMPTS_ENGLISH]).filter(
    ({ text }) => /^\p{Lu}/u.test(text) && text.split(' ').length > 3 && !/[.?:…}]$/.test(text),
  )
  assert.equal(bad, [])
})

test('a table of another language is a translation, and its texts are filled as the English ones', () => {
  const { disk } = ENGLISH
  const partitions: PluralText = { one: '{count} Partition', other: '{count} Partitionen' }
  const german: FlasherTranslation = { ...ENGLISH, disk: { ...disk, partitions } }
  assert.equal(shapeOf(german), shapeOf(ENGLISH))
  assert.is(pluralOf(german.disk.partitions, 2), '{count} Partitionen')
  // A value that a text does not name, or lacks, does not compile.
  const name: Placeholder<typeof disk.refused.mounted> = 'points'
  assert.is(fill(disk.refused.mounted, { [name]: '/mnt' }), 'mounted on /mnt')
  const prompt: PromptTranslation = { ...PROMPTS_ENGLISH, cancelled: 'abgebrochen' }
  assert.equal(shapeOf(prompt), shapeOf(PROMPT_TEXTS))
})

test.run()
