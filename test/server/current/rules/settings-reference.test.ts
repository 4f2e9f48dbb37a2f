import { globSync, readFileSync } from 'node:fs'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { listSettings } from '#kit/config/rules/setting.ts'
import { renderReference, SETTINGS } from '#server/current/rules/settings.ts'

const test = suite('settings reference')

test('docs/settings.md is fresh: pnpm docs:settings makes it', () => {
  assert.is(readFileSync('docs/settings.md', 'utf8'), renderReference())
})

test('every setting is in it, in its section', () => {
  const text = renderReference()
  for (const { section, key } of listSettings(SETTINGS)) {
    const part = text.split('\n## ').find((each) => each.startsWith(`\`[${section}]\``)) ?? ''
    assert.match(part, `- **\`${key}\`**`)
  }
})

test('every variable that a program reads is in it', () => {
  const text = renderReference()
  const files = globSync('{runtime,appliance}/**/*.ts').map((path) => readFileSync(path, 'utf8'))
  const names = files.flatMap((file) => [...file.matchAll(/\benv\['(FLASHER_(?!TEST_)\w+)'\]/g)])
  assert.ok(names.length > 10)
  for (const [, name] of names) assert.match(text, `\`${name}\``)
})

test.run()
