/** The live system compiles modules when it is built: those that it names must be there. */
import { existsSync, readFileSync } from 'node:fs'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'

const test = suite('compile cache of the live system')

test('the modules that are compiled exist', () => {
  const script = readFileSync('overlays/live/usr/lib/flasher/live/warm.mjs', 'utf8')
  const names = [...script.matchAll(/'([\w/-]+\.ts)'/g)].map(([, name = '']) => name)
  assert.ok(names.length > 0)
  assert.equal(
    names.filter((name) => !existsSync(`runtime/${name}`)),
    [],
  )
})

test.run()
