/** The map of the repository, as it is printed. */
import { spawnSync } from 'node:child_process'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'

const test = suite('map')

const print = (...folders: readonly string[]) =>
  spawnSync(process.execPath, ['build/map.ts', ...folders], { encoding: 'utf8' })

test('every file is listed below its folder, with its first sentence', () => {
  const { status, stdout } = print()
  assert.is(status, 0)
  assert.match(stdout, /\n\nbuild\n(?: {2}.+\n)*? {2}map\.ts: `pnpm docs:map/)
  assert.match(stdout, /\n\nruntime\/engine\/flash\n/)
})

test('a folder lists what is below it', () => {
  const { status, stdout } = print('runtime/engine/flash/')
  assert.is(status, 0)
  const folders = stdout.split('\n').filter((line) => /^\w/.test(line))
  assert.equal(folders, ['runtime/engine/flash', 'runtime/engine/flash/rules'])
})

test.run()
