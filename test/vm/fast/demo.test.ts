/** However and whenever `pnpm demo` is ended, nothing that it started goes on. */
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { findBuildObstacle } from '../../support/vm/built-images.ts'
import { layLiveSystem, startDemo } from '../../support/vm/demo.ts'

const test = suite('demo')
const obstacle = findBuildObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

run('Ctrl-C before the server is up, once it is, and once the machine runs', async () => {
  await layLiveSystem()
  for (const event of ['live-system', 'prepared', 'open', 'discovered']) {
    await using demo = await startDemo()
    await demo.saw(event)
    demo.child.kill('SIGINT')
    assert.is(await demo.ended(), 0, demo.said())
    assert.is(demo.lines.at(-1)?.event, 'stopped', event)
    assert.equal(await demo.processes(), [], event)
  }
})

run('with --auto, an interrupted demo has not succeeded', async () => {
  await using demo = await startDemo('--auto')
  await demo.saw('open')
  demo.child.kill('SIGTERM')
  assert.is(await demo.ended(), 130)
  assert.equal(await demo.processes(), [])
})

run('killed, it leaves no machine, no server and no cache', async () => {
  await using demo = await startDemo()
  await demo.saw('discovered')
  assert.is((await demo.processes()).length, 4)
  demo.child.kill('SIGKILL')
  await demo.ended()
  while ((await demo.processes()).length > 0) await sleep(100)
})

test.run()
