/** The tables of the pages' texts: complete in every language, and written alike. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { ENGLISH } from '../../../runtime/server/texts/english.ts'
import { PAGES, type ServerTranslation } from '../../../runtime/server/texts/texts.ts'
import { listMalformed, listTexts, shapeOf } from '../../support/text-tables.ts'

/** Examples of searches, whose terms stand apart, and of JSON. */
const EXAMPLES = [
  'earlier.machines.example',
  'machines.search.placeholder',
  'settings.fields.secret.options',
]

const test = suite('texts of the pages')

test('the table in use has the same texts with the same placeholders as the English one', () => {
  assert.ok(listTexts(ENGLISH).length > 500)
  assert.equal(shapeOf(PAGES), shapeOf(ENGLISH))
})

test('no text is empty, has superfluous blanks, or a brace that is no placeholder', () => {
  const bad = listMalformed(ENGLISH).filter(({ key }) => !EXAMPLES.includes(key))
  assert.equal(bad, [])
})

test('a table of another language is a translation', () => {
  const { dashboard } = ENGLISH
  const german: ServerTranslation = {
    ...ENGLISH,
    dashboard: { ...dashboard, running: 'Läuft gerade' },
  }
  assert.equal(shapeOf(german), shapeOf(ENGLISH))
})

test.run()
