/** What benchmarks write into documents is formatted as the rest of them is. */
import { execFileSync } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { publishText } from '../bench/publish.ts'
import { MEASURED } from '../support/documents/measured.ts'

const test = suite('publish')

test('a table comes out as the formatter wants it, and replaces the one before', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-publish-'))
  try {
    const path = join(folder, 'page.md')
    await writeFile(path, '# Page\n\n<!-- measured:x -->\n\nold\n\n<!-- /measured:x -->\n\nafter\n')
    const table = '| a | long head |\n|---|--:|\n| much longer | 1 |'
    for (const text of ['first', table]) publishText('x', text, path)
    execFileSync('node_modules/.bin/oxfmt', ['--check', path])
    const page = await readFile(path, 'utf8')
    assert.match(page, '| much longer |         1 |')
    assert.match(page, 'after\n')
    assert.not.match(page, /old|first/)
    const text = await readFile(join(folder, 'measured', 'x.json'), 'utf8')
    const record = MEASURED.parse(JSON.parse(text))
    assert.match(page, `Measured on ${record.on}: ${record.where}.`)
  } finally {
    await rm(folder, { recursive: true })
  }
})
test.run()
