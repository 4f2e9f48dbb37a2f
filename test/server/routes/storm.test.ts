/** The storm gate over HTTP: machines that all boot at once, and the queue in which they wait. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { diskOf, entryOf, REF } from '#test/support/server/machine-fixture.ts'
import { bodyOf } from '#test/support/server/runs.ts'
import { asJson, createTestServer, readJson, type TestServer } from '#test/support/server/server.ts'
import { macOf } from '#test/support/server/state.ts'

const test = suite('storm gate')

const FLASH = { boot_mode: 'flasher-flash-once', bty_image_ref: REF, target_disk_serial: 'S1' }

async function open(boxes: number, max_flashes: number) {
  const clock = { seconds: 1_800_000_000 }
  const server = await createTestServer({
    catalog: [entryOf(REF)],
    env: { FLASHER_PXE_MAX_FLASHES: String(max_flashes) },
    now: () => new Date(clock.seconds * 1000),
  })
  const ask = await server.operator()
  for (let box = 1; box <= boxes; box++) {
    await ask(`/machines/${macOf(box)}`, asJson(FLASH, 'PUT'))
  }
  return { server, clock, ask, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

/** `live`, or the place in line. */
async function contact(server: TestServer, box: number): Promise<string | number> {
  const script = await (await server.request(`/pxe/${macOf(box)}?buildarch=x86_64`)).text()
  if (script.includes('\nkernel ')) return 'live'
  assert.not.match(script, /sanboot|\bexit\b/, 'it neither boots its disk nor gives up')
  return Number(/waits: place (\d+) of/.exec(script)?.[1] ?? Number.NaN)
}

const planOf = async (server: TestServer, box: number): Promise<string> =>
  (await readJson(server.request(`/pxe/${macOf(box)}/plan`))).mode

const all = (server: TestServer, boxes: number) =>
  Promise.all(Array.from({ length: boxes }, (_, at) => contact(server, at + 1)))

test('of 40 boxes that come at the same moment as many flash as may, each other has its place', async () => {
  await using site = await open(40, 3)
  const told = await all(site.server, 40)
  assert.is(told.filter((each) => each === 'live').length, 3)
  const places = told.filter((each) => typeof each === 'number').toSorted((a, b) => a - b)
  assert.equal(
    places,
    Array.from({ length: 37 }, (_, at) => at + 1),
  )
  const again = await all(site.server, 40)
  assert.equal(again, told, 'asking again changes nothing')
})

test('the script says what is up, sleeps 20 seconds, and asks again for ever', async () => {
  await using site = await open(2, 1)
  await contact(site.server, 1)
  const script = await (await site.server.request(`/pxe/${macOf(2)}`)).text()
  const mac = macOf(2)
  assert.equal(script.split('\n'), [
    '#!ipxe',
    `# flasher: ${mac}, mode flasher-flash-once`,
    '# queued: It waits for its turn: as many machines as allowed are being flashed.',
    ':wait',
    `echo flasher: ${mac} waits: place 1 of 1, 1 is being flashed`,
    'sleep 20 ||',
    `chain --replace --autofree http://flasher.test:8080/pxe/${mac.replaceAll(':', '-')} || goto wait`,
    '',
  ])
  const machine = await site.server.machines.find(mac)
  assert.equal([machine?.cycle.offers, machine?.cycle.loop_suspected_at], [0, null])
})

test('an hour in line is no loop, one note in the journal, and nothing stored', async () => {
  await using site = await open(2, 1)
  await contact(site.server, 1)
  await contact(site.server, 2)
  const before = await site.server.machines.find(macOf(2))
  for (let turn = 0; turn < 180; turn++) {
    site.clock.seconds += 20
    if (turn % 30 === 0) await site.server.request(`/pxe/${macOf(1)}/plan`)
    assert.is(await contact(site.server, 2), 1)
  }
  const after = await site.server.machines.find(macOf(2))
  assert.is(after?.updated_at, before?.updated_at)
  const offered = { kind: 'netboot.pxe.offered', subject_id: macOf(2), limit: 10 }
  assert.is((await site.server.journal.list(offered)).length, 1)
  assert.equal(await site.server.journal.list({ kind: 'netboot.loop.suspected', limit: 10 }), [])
})

test('a box in line that reports a flash of its own is flashed, and no longer in line', async () => {
  await using site = await open(3, 1)
  const { server } = site
  assert.equal([await contact(server, 1), await contact(server, 2)], ['live', 1])
  assert.is(await contact(server, 3), 2)
  const report = (fields: Parameters<typeof bodyOf>[0]) =>
    server.request(`/pxe/${macOf(2)}/progress`, asJson(bodyOf(fields)))
  site.clock.seconds += 2
  assert.is((await report({ phase: 'started' })).status, 204)
  const { cycle } = (await server.machines.find(macOf(2))) ?? {}
  assert.equal([cycle?.planned, cycle?.queued_at], [true, null])
  await server.request(`/pxe/${macOf(1)}/done`, { method: 'POST' })
  assert.is(await contact(server, 3), 1)
  const script = await (await server.request(`/pxe/${macOf(3)}`)).text()
  assert.match(script, /place 1 of 1, 1 is being flashed/)
  assert.is((await report({ phase: 'failed', reason: 'no' })).status, 204)
  await server.request(`/pxe/${macOf(2)}/status`, asJson({ status: 'failed' }))
  assert.is(await contact(server, 3), 'live')
})

test('done, failed, an edit and silence let the next one in', async () => {
  await using site = await open(6, 1)
  const { server, ask } = site
  const first = `/pxe/${macOf(1)}`
  assert.equal(await all(server, 1), ['live'])
  for (let box = 2; box <= 6; box++) assert.is(await contact(server, box), box - 1)

  await server.request(`${first}/plan`)
  await server.request(`${first}/done`, { method: 'POST' })
  assert.equal([await contact(server, 3), await contact(server, 2)], [2, 'live'])

  await server.request(`/pxe/${macOf(2)}/status`, asJson({ status: 'failed', reason: 'no' }))
  assert.is(await contact(server, 3), 'live')

  site.clock.seconds += 1
  await ask(`/machines/${macOf(3)}`, asJson({ ...FLASH, target_disk_serial: 'S2' }, 'PUT'))
  assert.is(await contact(server, 4), 'live')

  await ask(`/machines/${macOf(4)}`, { method: 'DELETE' })
  assert.is(await contact(server, 5), 'live')

  for (let turn = 0; turn < 90; turn++) {
    site.clock.seconds += 20
    assert.is(await contact(server, 6), turn < 89 ? 1 : 'live', `turn ${turn}`)
  }
})

test('a flash that its machine cancelled gives its place back, without another word', async () => {
  await using site = await open(2, 1)
  assert.equal([await contact(site.server, 1), await contact(site.server, 2)], ['live', 1])
  await site.server.request(`/pxe/${macOf(1)}/plan`)
  const post = (phase: string) =>
    site.server.request(
      `/pxe/${macOf(1)}/progress`,
      asJson({
        run: 'run-00000001',
        phase,
        bytes_read: 0,
        bytes_written: 0,
        total_bytes: null,
        rate: null,
        eta_seconds: null,
      }),
    )
  assert.is((await post('write')).status, 204)
  assert.is(await contact(site.server, 2), 1)
  assert.is((await post('cancelled')).status, 204)
  assert.is(await contact(site.server, 2), 'live')
})

test('a machine whose plan is not to flash after all gives its place back', async () => {
  await using site = await open(3, 1)
  const { server, ask } = site
  assert.equal([await contact(server, 1), await contact(server, 2)], ['live', 1])
  // Its disk is not among those that it has: somebody has to look.
  await server.request(`/pxe/${macOf(1)}/inventory`, asJson({ disks: [diskOf('S9')] }))
  assert.is(await contact(server, 2), 1)
  assert.is(await planOf(server, 1), 'interactive')
  assert.is(await contact(server, 2), 'live')
  assert.equal([await contact(server, 3), await contact(server, 1)], [1, 2], 'it waits like all')

  await ask('/machines/bulk', asJson({ action: 'lock', macs: [macOf(2)] }))
  assert.is(await planOf(server, 2), 'exit')
  assert.is(await contact(server, 3), 'live')
})

test('a machine that is flashed without a script of ours counts as well', async () => {
  await using site = await open(3, 1)
  await site.server.request(`/pxe/${macOf(1)}/plan`)
  assert.equal([await contact(site.server, 2), await contact(site.server, 3)], [1, 2])
  await site.server.request(`/pxe/${macOf(2)}/plan`)
  assert.equal([await contact(site.server, 3)], [1], 'it waits no longer')
})

test('modes that do not flash pass by the line', async () => {
  await using site = await open(3, 1)
  assert.is(await contact(site.server, 1), 'live')
  await site.ask(`/machines/${macOf(2)}`, asJson({ boot_mode: 'flasher-tui' }, 'PUT'))
  await site.ask(`/machines/${macOf(3)}`, asJson({ boot_mode: 'flasher-inventory' }, 'PUT'))
  assert.equal(await all(site.server, 3), ['live', 'live', 'live'])
})

test.run()
