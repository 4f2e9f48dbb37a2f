import { spawnSync } from 'node:child_process'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'

const test = suite('linger')
const MODULE = new URL('../../../runtime/kit/host/watch.ts', import.meta.url).href

test('a program that waits for nothing else stays for it', () => {
  const script = `
    import { linger } from ${JSON.stringify(MODULE)}
    await linger(50, new AbortController().signal)
    await linger(60_000, AbortSignal.abort())
    console.log('stayed')`
  const options = { encoding: 'utf8' } as const
  const ended = spawnSync(process.execPath, ['--input-type=module', '--eval', script], options)
  assert.equal([ended.status, ended.stdout], [0, 'stayed\n'])
})

test.run()
