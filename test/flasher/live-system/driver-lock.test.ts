import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { takeDriverLock } from '#flasher/live-system/live-console.ts'

const test = suite('driver lock')
const MODULE = new URL('../../../runtime/flasher/live-system/live-console.ts', import.meta.url).href
const NAME = `/run/flasher/test-${process.pid}`

/** Another process that takes the lock and keeps it until it is killed. */
async function startHolder() {
  const script = `
    import { takeDriverLock } from ${JSON.stringify(MODULE)}
    console.log((await takeDriverLock(${JSON.stringify(NAME)})) === null ? 'busy' : 'held')
    setInterval(() => {}, 1000)`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [said] = await once(child.stdout, 'data')
  return {
    said: String(said).trim(),
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await once(child, 'exit')
    },
  }
}

test('one holder at a time, and whoever is killed holds nothing', async () => {
  {
    await using holder = await startHolder()
    assert.is(holder.said, 'held')
    assert.is(await takeDriverLock(NAME), null)
  }
  {
    await using lock = await takeDriverLock(NAME)
    assert.is.not(lock, null)
    await using other = await startHolder()
    assert.is(other.said, 'busy')
  }
  await using again = await takeDriverLock(NAME)
  assert.is.not(again, null)
})

test.run()
