/** The questions before power is cut: the answer means the runs that the question named, and none that began later. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createServerHome, login } from '#test/support/server/flasher-web.ts'
import { asJson } from '#test/support/server/server.ts'
import { createBoxes, macOf } from '#test/support/server/web-machines.ts'
import { BMC_USER, startRedfish } from '#test/support/power/redfish-fake.ts'

const test = suite('questions before power is cut')
const [FORMER, LATER] = ['c0ffee00-0001', 'c0ffee00-0002']

/** The real program, and a machine that is on, with a run under way. */
async function open() {
  const stack = new AsyncDisposableStack()
  const fake = stack.use(await startRedfish())
  fake.state.isOn = true
  const home = stack.use(await createServerHome())
  const env = { FLASHER_ADMIN_PASSWORD: 'secret', FLASHER_POWER_NETWORKS: '127.0.0.0/8' }
  const server = stack.use(await home.start([], { ...env, FLASHER_POWER_STAGGER: '0' }))
  const boxes = createBoxes(server.url)
  await boxes.boot(1)
  const { cookie } = await login(server.url, 'secret')
  const ask = (path: string, init: RequestInit) =>
    fetch(`${server.url}${path}`, {
      ...init,
      redirect: 'manual',
      headers: { ...(init.headers as object), cookie },
    })
  const bmc = { way: 'redfish', address: fake.address, credential: BMC_USER }
  assert.is((await ask(`/machines/${macOf(1)}/power`, asJson(bmc, 'PUT'))).status, 200)
  const report = (run: string, phase: string) => boxes.report(1, { run, phase, mode: 'flash' })
  await report(FORMER, 'write')
  return {
    fake,
    resets: () => fake.asked.filter((each) => each.includes('Reset')).length,
    /** Another run begins. */
    async begin() {
      await report(FORMER, 'failed')
      await report(LATER, 'write')
    },
    async post(path: string, fields: Readonly<Record<string, string>>) {
      const answer = await ask(path, { method: 'POST', body: new URLSearchParams(fields) })
      const page = await answer.text()
      const runs = / name="runs" value="([^"]*)"/.exec(page)?.[1] ?? null
      return { status: answer.status, page, runs }
    },
    async waitForOff() {
      while (fake.state.isOn) await new Promise((resolve) => setTimeout(resolve, 20))
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

test('the second question is asked again where another run began before its answer', async () => {
  await using site = await open()
  const path = `/ui/machines/${macOf(1)}/do/power`
  const off = { choice: 'off', confirm: 'yes' }
  assert.is((await site.post(path, { choice: 'off' })).runs, null)
  const second = await site.post(path, off)
  assert.is(second.runs, FORMER)
  await site.begin()
  const again = await site.post(path, { ...off, even: '1', runs: FORMER })
  assert.match(again.page, 'Cut the power while a disk is being written?')
  assert.is(again.runs, LATER)
  assert.equal([site.resets(), site.fake.state.isOn], [0, true])
  assert.is((await site.post(path, { ...off, even: '1', runs: LATER })).status, 303)
  await site.waitForOff()
})

test('so is the preview of many', async () => {
  await using site = await open()
  const asked = { action: 'power', macs: macOf(1), power_action: 'off', power_stagger: '0' }
  const cut = { ...asked, power_even: '1' }
  const preview = await site.post('/ui/machines/bulk', cut)
  assert.is(preview.runs, FORMER)
  await site.begin()
  const again = await site.post('/ui/machines/bulk', { ...cut, runs: FORMER, sure: '1' })
  assert.match(again.page, 'More disks are being written by now')
  assert.is(again.runs, LATER)
  assert.equal([site.resets(), site.fake.state.isOn], [0, true])
  const done = await site.post('/ui/machines/bulk', { ...cut, runs: LATER, sure: '1' })
  assert.match(done.page, 'Each result is an event')
  await site.waitForOff()
})

test.run()
