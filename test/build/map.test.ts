import { readFile } from 'node:fs/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readMapped } from '../../build/map/files.ts'
import { parseOpening, renderMap } from '../../build/map/overview.ts'

const test = suite('map')

test('a file is described by the first sentence of its comment', () => {
  const rows = [
    ['/** What a disk is. */\nimport x', 'What a disk is'],
    ['#!/usr/bin/env node\n/** Starts `flasher`: one. */\n', 'Starts `flasher`: one'],
    ['/**\n * Starts it. Plain JavaScript, because\n * so.\n */\nx', 'Starts it'],
    ['/** Two lines of\n * one sentence. */', 'Two lines of one sentence'],
    ['/** What `a.ts` and b.c are. `d` too. */', 'What `a.ts` and b.c are'],
    ['/** By 2 * 3. */', 'By 2 * 3'],
    ['const a = 1\n/** later */', ''],
    ['', ''],
  ] as const
  for (const [text, opening] of rows) assert.is(parseOpening(text), opening)
})

test('folders and files go by their names', () => {
  const files = ['b/z.ts', 'b/a.ts', 'a/x.ts', 'b/c/d.ts']
  const lines = renderMap(files.map((path) => ({ path, text: `/** ${path}. */` }))).split('\n')
  assert.equal(
    lines.filter((line) => /^(## |- )/.test(line)),
    [
      '## a',
      '- [x.ts](../a/x.ts): a/x.ts',
      '## b',
      '- [a.ts](../b/a.ts): b/a.ts',
      '- [z.ts](../b/z.ts): b/z.ts',
      '## b/c',
      '- [d.ts](../b/c/d.ts): b/c/d.ts',
    ],
  )
})

const linesOf = (text: string) => text.split('\n')

test('docs/map.md is what the files say', async () => {
  const shown = new Set(linesOf(await readFile('docs/map.md', 'utf8')))
  const real = new Set(linesOf(renderMap(await readMapped('.'))))
  const told = { missing: [...real.difference(shown)], stale: [...shown.difference(real)] }
  assert.equal(told, { missing: [], stale: [] }, 'run: npx pnpm docs:map')
})

test.run()
