/** How many of our files the programs load to start, and for a flash: who merges files may not merge what loads them. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { measureFlash, measureStart, type Ran } from '#test/support/house/house-coverage.ts'

const test = suite('loaded files')
const checkout = process.cwd()

function atMost({ loaded }: Ran, limit: number) {
  assert.ok(loaded !== null && loaded.length > 10, 'the coverage was not read')
  assert.ok(loaded.length <= limit, `${loaded.length} files:\n${loaded.join('\n')}`)
}

test('flasher --version loads few files', async () => {
  atMost(await measureStart(checkout, 'version'), 30)
})

test("the wizard's first screen loads what it shows", async () => {
  atMost(await measureStart(checkout, 'wizard'), 71)
})

test('a flash loads what a flash needs', async () => {
  atMost(await measureFlash(checkout), 140)
})

test.run()
