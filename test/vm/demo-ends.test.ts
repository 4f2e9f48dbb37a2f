/** However and whenever `pnpm demo` is ended, nothing that it started goes on. */
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { MACHINE } from '#build/demo/machine.ts'
import { findBuildObstacle } from '#test/support/vm/built-images.ts'
import { layLiveSystem, startDemo, type DemoLine } from '#test/support/vm/demo.ts'

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

run(
  'its BMC turns the machine off and on; killed, it leaves no machine, no BMC, no server and no cache',
  async () => {
    await using demo = await startDemo()
    await demo.saw('discovered')
    const count = async () => (await demo.processes()).length
    assert.is(await count(), 5)

    const ask = await logInto(await demo.saw('open'))
    assert.match(await ask({ action: 'off' }), '"state":"off"')
    assert.is(await count(), 4)
    assert.match(await ask({ action: 'on', boot: 'network' }), '"boot":"set"')
    assert.is(await count(), 5)
    demo.child.kill('SIGKILL')
    await demo.ended()
    while ((await demo.processes()).length > 0) await sleep(100)
  },
)

/** Asks the server of a demo about the power of its machine, as a browser that is logged in would. */
async function logInto({ url, password }: DemoLine) {
  const { origin } = new URL(String(url))
  const form = new URLSearchParams({ password: String(password) })
  const login = await fetch(`${origin}/ui/login`, {
    method: 'POST',
    body: form,
    redirect: 'manual',
  })
  const cookie = login.headers.getSetCookie()[0]?.split(';')[0] ?? ''
  return async (body: object): Promise<string> => {
    const answer = await fetch(`${origin}/machines/${MACHINE.mac}/power`, {
      method: 'POST',
      headers: { cookie, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return answer.text()
  }
}

test.run()
