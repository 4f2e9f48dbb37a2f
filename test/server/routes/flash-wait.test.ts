/** `POST …/flash {"wait": …}` ends as soon as its order does, however that comes about. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { entryOf, OTHER_REF, REF } from '#test/support/server/machine-fixture.ts'
import { asJson, createTestServer } from '#test/support/server/server.ts'

const test = suite('waiting for a flash')
const MAC = '52:54:00:00:00:01'
const FLASH = {
  boot_mode: 'flasher-flash-once',
  bty_image_ref: REF,
  target_disk_serial: 'S1',
}

async function open() {
  const server = await createTestServer({ catalog: [entryOf(REF), entryOf(OTHER_REF)] })
  const ask = await server.operator()
  await ask(`/machines/${MAC}`, asJson(FLASH, 'PUT'))
  const events = async () => (await server.journal.list({ kind: 'machine.flash', limit: 9 })).length
  return {
    server,
    ask,
    plan: () => server.request(`/pxe/${MAC}/plan`),
    done: (query = '') => server.request(`/pxe/${MAC}/done${query}`, { method: 'POST' }),
    /** Armed once the answer of another request has come. */
    async wait(seconds = 60) {
      const before = await events()
      const waiting = ask(`/machines/${MAC}/flash`, asJson({ wait: seconds }))
      while ((await events()) === before) await new Promise((resolve) => setTimeout(resolve, 5))
      return async () => (await (await waiting).json()).outcome
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}
type Site = Awaited<ReturnType<typeof open>>

const ENDS: Readonly<Record<string, readonly [string, (site: Site) => Promise<unknown>]>> = {
  'the machine is deleted': ['deleted', ({ ask }) => ask(`/machines/${MAC}`, { method: 'DELETE' })],
  'it is disarmed': [
    'disarmed',
    ({ ask }) => ask(`/machines/${MAC}`, asJson({ ...FLASH, boot_mode: 'ipxe-exit' }, 'PUT')),
  ],
  'it is given another image': [
    'replaced',
    ({ ask }) => ask(`/machines/${MAC}`, asJson({ ...FLASH, bty_image_ref: OTHER_REF }, 'PUT')),
  ],
  'it is armed once more': [
    'replaced',
    ({ ask }) => ask(`/machines/${MAC}/flash`, { method: 'POST' }),
  ],
  'it is flashed': [
    'flashed',
    async ({ plan, done }) => {
      await plan()
      await done()
    },
  ],
  'its flash fails': [
    'failed',
    async ({ plan, server }) => {
      await plan()
      await server.request(`/pxe/${MAC}/status`, asJson({ status: 'failed', reason: 'no space' }))
    },
  ],
}
for (const [name, [outcome, end]] of Object.entries(ENDS)) {
  test(`${outcome}: ${name}`, async () => {
    await using site = await open()
    const answer = await site.wait()
    await end(site)
    assert.is(await answer(), outcome)
  })
}

test('a done of the flash before ends no wait', async () => {
  await using site = await open()
  await site.plan()
  await site.done()
  const answer = await site.wait(0.5)
  await site.done()
  assert.is(await answer(), 'timeout')
  assert.is((await (await site.plan()).json()).mode, 'flash')
})

test('a done that names its run ends its own order, after the next was begun too', async () => {
  await using site = await open()
  await site.plan()
  const run = 'run-00000001'
  const post = (phase: string) =>
    site.server.request(
      `/pxe/${MAC}/progress`,
      asJson({ run, phase, bytes_read: 1, bytes_written: 1, total_bytes: 4, rate: 1 }),
    )
  await post('write')
  const answer = await site.wait(0.5)
  await site.plan()
  await site.done(`?run=${run}`)
  assert.is(await answer(), 'timeout')
  assert.is((await (await site.plan()).json()).mode, 'flash')
  const { runs } = await (await site.ask(`/runs?mac=${MAC}`)).json()
  assert.equal(
    runs.map((each: { id: string; state: string }) => [each.id, each.state]),
    [[run, 'done']],
  )
  assert.is(Object.hasOwn(runs[0], 'order'), false)
})

test.run()
