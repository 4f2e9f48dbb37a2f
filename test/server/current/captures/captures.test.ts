/** Captures over HTTP: ordered by an operator, planned for a live system, uploaded and reported by it. */
import { copyFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { refOf } from '#engine/catalog/rules/catalog.ts'
import { fileSource } from '#engine/catalog/rules/cache-entry.ts'
import { ProgressSchema } from '#engine/inventory/rules/run.ts'
import type { TokenPolicy } from '#server/current/machines/rules/token.ts'
import { makeCapture, openCaptureLab, SOURCE } from '#test/support/capture/uploads.ts'
import { diskOf, entryOf, MAC, PXE_RULES } from '#test/support/server/machine-fixture.ts'
import { asJson, createTestServer, type TestServerOptions } from '#test/support/server/server.ts'

const test = suite('captures over HTTP')
const NAME = 'web-42.img.zst'
const CAPTURE = `/machines/${MAC}/capture`
const RUN = 'capture-0001'
const IMAGE = await makeCapture(100_000)

async function open(tokens: TokenPolicy = 'off', options: TestServerOptions = {}) {
  const clock = { seconds: Math.floor(Date.now() / 1000) }
  const server = await createTestServer({
    env: { FLASHER_PXE_TOKENS: tokens },
    now: () => new Date(clock.seconds * 1000),
    ...options,
  })
  const ask = await server.operator()
  await ask(`/machines/${MAC}`, asJson({ boot_mode: 'ipxe-exit' }, 'PUT'))
  let headers: Readonly<Record<string, string>> = {}
  const post = (path: string, body: object) =>
    server.request(`/pxe/${MAC}/${path}`, {
      ...asJson(body),
      headers: { 'content-type': 'application/json', ...headers },
    })
  return {
    server,
    clock,
    ask,
    post,
    order: (body: object = {}) => ask(CAPTURE, asJson({ name: NAME, disk_serial: 'S1', ...body })),
    /** As the machine does it: its script, its disks, its plan. */
    async boot(features = 'first-boot,capture') {
      const script = await (await server.request(`/pxe/${MAC}`)).text()
      const token = / flasher\.token=(\S+) /.exec(script)?.[1]
      headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
      const listed = await post('inventory', { disks: [diskOf('S1')] })
      assert.is(listed.status, 204, await listed.text())
      const plan = await server.request(`/pxe/${MAC}/plan?features=${features}`, { headers })
      return { script, plan: await plan.json() }
    },
    report: (phase: string, more: object = {}) =>
      post('progress', {
        run: RUN,
        mode: 'capture',
        phase,
        bytes_read: 0,
        bytes_written: 0,
        total_bytes: null,
        rate: null,
        ...more,
      }),
    machine: async () => (await ask(`/machines/${MAC}`)).json(),
    async kinds() {
      const events = await server.journal.list({ limit: 100 })
      return events.map(({ kind }) => kind).filter((kind) => kind.startsWith('machine.'))
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

for (const tokens of ['off', 'require'] as const) {
  test(`from the order to the accepted image, with boot tokens ${tokens}`, async () => {
    await using site = await open(tokens)
    const ordered = await site.order({ generalize: true })
    assert.is(ordered.status, 200)
    const { capture } = await ordered.json()
    assert.equal([capture.name, capture.disk_serial, capture.result], [NAME, 'S1', null])
    const { script, plan } = await site.boot()
    assert.match(script, '# capture: ')
    assert.equal(
      [plan.mode, plan.source_disk_serial, plan.name, plan.generalize],
      ['capture', 'S1', NAME, true],
    )
    assert.is(plan.upload.url, 'http://flasher.test:8081/captures')
    assert.equal(plan.plan.upload, plan.upload)
    await using lab = await openCaptureLab({
      prepare(folder) {
        mkdirSync(join(folder, '.cache'))
        copyFileSync(join(site.server.dir, 'session-secret'), join(folder, '.cache/secret'))
      },
    })
    assert.is((await site.report('started')).status, 204)
    const written = { bytes_read: 90, bytes_written: 80, total_bytes: 160, rate: 10 }
    assert.is((await site.report('write', written)).status, 204)
    const [live] = site.server.runs.listRunning()
    assert.equal(
      [live?.mode, live?.image?.name, live?.disk?.serial, live?.step_bytes, live?.step_total],
      ['capture', NAME, 'S1', 80, 160],
    )
    const source = { ...SOURCE, mac: MAC }
    const machine = lab.machine(plan.upload.token)
    assert.is((await machine.begin('other.img.zst', source)).status, 401)
    const begun = await machine.begin(NAME, source)
    assert.is(begun.status, 201, JSON.stringify(begun.body))
    await machine.send(begun.body['id'], 0, IMAGE.file)
    assert.is((await machine.finish(begun.body['id'], IMAGE.end)).status, 200)
    assert.is((await site.report('verify')).status, 204)
    assert.is((await site.report('done', { ...written, bytes_written: 160 })).status, 204)
    assert.is((await site.report('done', { ...written, bytes_written: 160 })).status, 204)
    const after = await site.machine()
    assert.equal(
      [after.capture.result, after.boot_mode, after.last_flashed_at],
      ['done', 'ipxe-exit', null],
    )
    assert.match(await (await site.server.request(`/pxe/${MAC}`)).text(), '# ipxe-exit: ')
    const kinds = await site.kinds()
    for (const kind of ['machine.capture', 'machine.capture_started', 'machine.captured']) {
      assert.is(kinds.filter((each) => each === kind).length, 1, kind)
    }
    assert.not.ok(kinds.includes('machine.flashed'))
    const { body } = await lab.operator.post(`/captures/${begun.body['id']}/accept`, {})
    assert.equal([body['name'], body['sha256']], [NAME, IMAGE.end.sha256])
  })
}

test('a client that does not announce it opens the wizard with the reason', async () => {
  await using site = await open()
  await site.order()
  for (const features of ['', 'first-boot', 'capture2']) {
    const { plan } = await site.boot(features)
    assert.is(plan.mode, 'interactive')
    assert.match(plan.reason, /too old to capture disks/)
    assert.is(plan.upload, undefined)
  }
  assert.is((await site.machine()).capture.planned_at, null)
})

test('a failure is reported once, and the machine follows its mode', async () => {
  await using site = await open()
  await site.order()
  await site.boot()
  await site.report('started')
  const failed = { reason: 'the disk is in use' }
  await site.report('failed', failed)
  await site.report('failed', failed)
  const { capture } = await site.machine()
  assert.equal([capture.result, capture.reason], ['failed', 'the disk is in use'])
  const kinds = await site.kinds()
  assert.is(kinds.filter((kind) => kind === 'machine.capture_failed').length, 1)
  assert.not.ok(kinds.some((kind) => kind.startsWith('machine.flash')))
  site.clock.seconds += 60
  assert.is((await site.order()).status, 200)
  const late = await site.report('cancelled')
  assert.is(late.status, 204)
  assert.is((await site.machine()).capture.result, null, 'the run of before is not this one')
})

test('an end that only the run kept is taken from the repeated post', async () => {
  await using site = await open()
  await site.order()
  await site.boot()
  await site.report('started')
  const run = site.server.runs.find(MAC, RUN)
  assert.ok(run)
  // A server that is killed between its two writes gets this far.
  const figures = { bytes_read: 90, bytes_written: 90, total_bytes: 90, rate: null }
  const post = ProgressSchema.parse({ run: RUN, phase: 'done', ...figures })
  assert.ok((await site.server.runs.take(post, run)).ok)
  assert.is((await site.machine()).capture.result, null)
  for (let times = 0; times < 2; times += 1) {
    assert.is((await site.report('done', figures)).status, 204)
    assert.is((await site.machine()).capture.result, 'done')
  }
  assert.is((await site.kinds()).filter((kind) => kind === 'machine.captured').length, 1)
})

test('a machine that never reports is given up after some boots, with an event', async () => {
  await using site = await open()
  await site.order()
  for (let at = 0; at < PXE_RULES.loop_limit; at += 1) await site.boot()
  const { script } = await site.boot()
  assert.match(script, '# ipxe-exit: ')
  const { capture } = await site.machine()
  assert.is(capture.result, 'failed')
  assert.match(capture.reason, /started the live system too often/)
  assert.ok((await site.kinds()).includes('machine.capture_failed'))
})

test('machines that start over get a token that replaces the older one', async () => {
  await using site = await open()
  await site.order()
  const first = (await site.boot()).plan.upload.token
  assert.is((await site.boot()).plan.upload.token, first, 'asked again at once')
  site.clock.seconds += 2
  const second = (await site.boot()).plan.upload.token
  assert.is.not(second, first)
  assert.is(second.split('.')[0], first.split('.')[0], 'the same order')
})

test('orders are refused in words, and cancelled', async () => {
  await using site = await open()
  assert.is((await site.order({ name: '../x.img.zst' })).status, 422)
  assert.is((await site.order({ name: 'x.img' })).status, 422)
  assert.is((await site.order({ folder: '/etc' })).status, 422)
  assert.is((await site.ask(CAPTURE, { method: 'DELETE' })).status, 409)
  assert.is((await site.order()).status, 200)
  const again = await site.order()
  assert.equal(
    [again.status, (await again.json()).detail],
    [409, 'A capture is already ordered. Cancel it first.'],
  )
  const armed = await site.ask(
    `/machines/${MAC}`,
    asJson({ boot_mode: 'flasher-flash-once', target_disk_serial: 'S1' }, 'PUT'),
  )
  assert.is(armed.status, 422)
  assert.match(await armed.text(), 'A capture is ordered')
  const cancelled = await site.ask(CAPTURE, { method: 'DELETE' })
  assert.is((await cancelled.json()).capture.result, 'cancelled')
  const nobody = '/machines/52:54:00:99:99:99/capture'
  assert.is((await site.ask(nobody, asJson({ name: NAME }))).status, 404)
  assert.is((await site.server.request(CAPTURE, asJson({ name: NAME }))).status, 401)
})

test('without a cache service nothing is ordered', async () => {
  await using site = await open('off', { cacheUrl: null })
  const refused = await site.order()
  assert.is(refused.status, 409)
  assert.match((await refused.json()).detail, /no cache service/)
  const bulk = { macs: [MAC], action: 'capture', parameters: { name: NAME, disk_serial: 'S1' } }
  assert.match(await (await site.ask('/machines/bulk', asJson(bulk))).text(), 'no cache service')
  assert.is((await site.machine()).capture, null)
})

test('machines that are captured together get images of their own', async () => {
  await using site = await open()
  const macs = [MAC, '52:54:00:99:99:99']
  const ask = async (more: object, parameters: object) => {
    const bulk = { ...more, action: 'capture', parameters: { disk_serial: 'S1', ...parameters } }
    const answer = await site.ask('/machines/bulk', asJson(bulk))
    return { status: answer.status, text: await answer.text() }
  }
  for (const which of [{ macs }, { q: ':' }]) {
    const refused = await ask(which, { name: NAME })
    assert.is(refused.status, 422)
    assert.match(refused.text, 'must contain {name} or {mac}')
  }
  assert.is((await ask({ macs: [MAC], dry_run: true }, { name: NAME })).status, 200)
  assert.is((await ask({ macs }, {})).status, 200)
  const { capture } = await site.machine()
  assert.is(capture?.name, `machine-${MAC.replaceAll(':', '-')}.img.zst`)
})

test('of two machines with one name the second is refused, in a dry run too', async () => {
  await using site = await open()
  const macs = [MAC, '52:54:00:99:99:99']
  for (const mac of macs) {
    await site.ask(`/machines/${mac}`, asJson({ boot_mode: 'ipxe-exit', name: 'web' }, 'PUT'))
  }
  const parameters = { name: '{name}.img.zst', disk_serial: 'S1' }
  for (const dry_run of [true, false]) {
    const bulk = { macs, action: 'capture', parameters, dry_run }
    const answer = await (await site.ask('/machines/bulk', asJson(bulk))).json()
    assert.equal(
      answer.results.map(({ result, reason }: Record<string, unknown>) => [result, reason]),
      [
        ['done', null],
        ['refused', 'Another machine would use the same image name. Choose another name.'],
      ],
    )
  }
  const second = await (await site.ask(`/machines/${macs[1]}`)).json()
  assert.equal([(await site.machine()).capture?.name, second.capture], ['web.img.zst', null])
})

async function refusal(answer: Response): Promise<string> {
  assert.is(answer.status, 409)
  return JSON.stringify(await answer.json())
}

test('a name that an image, or another capture, has is refused before the machine boots', async () => {
  const ref = refOf(fileSource(NAME))
  assert.ok(ref.ok)
  const listed = { ...entryOf('1'.repeat(64)), name: 'listed.img.zst' }
  await using site = await open('off', { catalog: [listed] })
  const OTHER = '52:54:00:12:34:99'
  const put = (mac: string, body: object) => site.ask(`/machines/${mac}`, asJson(body, 'PUT'))
  assert.match(
    await refusal(await site.order({ name: 'listed.img.zst' })),
    'There is already an image called listed.img.zst',
  )
  const bound = { bty_image_ref: ref.value, target_disk_serial: 'S9' }
  await put(OTHER, { boot_mode: 'flasher-flash-always', ...bound })
  assert.match(
    await refusal(await site.order()),
    'Machines are still assigned a removed image called',
  )
  await put(OTHER, { boot_mode: 'ipxe-exit', target_disk_serial: 'S9' })
  const same = asJson({ name: NAME, disk_serial: 'S9' })
  assert.is((await site.ask(`/machines/${OTHER}/capture`, same)).status, 200)
  assert.match(await refusal(await site.order()), 'Another machine would use the same image name')
  await site.ask(`/machines/${OTHER}/capture`, { method: 'DELETE' })
  assert.is((await site.order()).status, 200)
})

test.run()
