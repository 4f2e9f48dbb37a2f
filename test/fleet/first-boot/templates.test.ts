/** First-boot templates on disk: after a restart, an upgrade and an export, which has no secrets. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { DOTS, parseTemplate } from '#engine/first-boot/rules/template.ts'
import { createTemplates } from '#fleet/first-boot/templates.ts'
import { bundlesOf } from '#test/support/server/backups.ts'
import { createStateFolder } from '#test/support/server/state.ts'

const test = suite('templates')

const parsed = parseTemplate({
  commands: ['join {{secret.token}}'],
  secrets: { token: 'geheim-77' },
})
if (!parsed.ok) throw new Error('the template is refused')
const template = parsed.value
const named = (name: string) => ({ name, template, updated_at: '2026-01-01T00:00:00.000Z' })

test('are there after a restart and after an upgrade, with their secrets', async () => {
  await using folder = await createStateFolder()
  {
    await using state = await folder.open()
    const templates = createTemplates(state.database)
    assert.ok((await templates.save('web', () => named('web'))).ok)
    assert.ok((await templates.save('db', (before) => before ?? named('db'))).ok)
    assert.is((await templates.remove('db'))?.name, 'db')
    assert.is(await templates.remove('db'), null)
  }
  for (const release of ['1.2.3', '9.9.9']) {
    await using state = await folder.open({ release })
    const kept = createTemplates(state.database).list()
    assert.equal(
      kept.map((one) => [one.name, one.template]),
      [['web', template]],
    )
  }
})

test('an export has dots; an import brings what is not there, without secrets', async () => {
  await using source = await createStateFolder()
  await using target = await createStateFolder()
  await using from = await source.open()
  await createTemplates(from.database).save('web', () => named('web'))
  await createTemplates(from.database).save('kept', () => named('kept'))
  const out = join(source.dir, 'out')
  await bundlesOf(from).exportTo(out)
  const text = await readFile(join(out, 'inventory.json'), 'utf8')
  assert.not.match(text, 'geheim')
  assert.match(text, DOTS)
  await using to = await target.open()
  const templates = createTemplates(to.database)
  await templates.save('kept', () => named('kept'))
  await bundlesOf(to).importFrom(out)
  assert.equal(templates.find('web')?.template, { ...template, secrets: { token: null } })
  assert.equal(templates.find('kept')?.template, template)
})

test.run()
