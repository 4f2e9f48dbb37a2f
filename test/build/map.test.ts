import { readFile } from 'node:fs/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readMapped } from '../../build/map/files.ts'
import { renderMap } from '../../build/map/overview.ts'

const test = suite('map')

const linesOf = (text: string) => text.split('\n')

test('docs/map.md is what the files say', async () => {
  const shown = new Set(linesOf(await readFile('docs/map.md', 'utf8')))
  const real = new Set(linesOf(renderMap(await readMapped('.'))))
  const told = { missing: [...real.difference(shown)], stale: [...shown.difference(real)] }
  assert.equal(told, { missing: [], stale: [] }, 'run: npx pnpm docs:map')
})

test.run()
