import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { decideBottleneck } from '#engine/flash/rules/flash.ts'

const test = suite('bottleneck')

test('what was waited for most holds it up', () => {
  const [file, packed, web] = [
    { isRemote: false, isDecoded: false },
    { isRemote: false, isDecoded: true },
    { isRemote: true, isDecoded: true },
  ] as const
  const rows = [
    [{ disk: 0.8, filling: 0.1, source: 0.1 }, web, 'disk'],
    [{ disk: 0.1, filling: 0.8, source: 0.7 }, web, 'network'],
    [{ disk: 0.1, filling: 0.8, source: 0.7 }, packed, 'source'],
    [{ disk: 0.1, filling: 0.8, source: 0.1 }, packed, 'decoder'],
    [{ disk: 0, filling: 0.8, source: 0.1 }, file, 'source'],
    [{ disk: 0.05, filling: 0.04, source: 0 }, web, null],
  ] as const
  for (const [waited, from, found] of rows) {
    assert.is(decideBottleneck({ ...waited, span: 1 }, from), found)
  }
})
test.run()
