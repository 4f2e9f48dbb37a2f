/** What somebody on the network, or with a token that may do little, tries against a server of the earlier line. */
import { once } from 'node:events'
import { mkdir, readdir } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { createEarlierServer } from '#test/support/server/earlier-server.ts'
import { asJson, listen } from '#test/support/server/server.ts'
import { createWorkflowFixture, eventually } from '#test/support/system/workflow-fixture.ts'

const test = suite('the earlier line: hostile use')
const MAC = '52:54:00:12:34:56'
const run = $({ quiet: true, verbose: false })

type Server = Awaited<ReturnType<typeof createEarlierServer>>

const put = (body: RequestInit['body']): RequestInit & { duplex: 'half' } => ({
  method: 'PUT',
  duplex: 'half',
  ...(body === undefined ? {} : { body }),
})
const readScript = async (server: Server, mac = MAC) =>
  await (await server.request(`/pxe/${mac}`)).text()

test('what is no MAC address is refused by every route, and nothing is recorded', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  const before = await server.machines.count()
  for (const mac of [
    'x',
    '52:54:00:12:34',
    '52:54:00:12:34:56:78',
    '52:54:00:12:34:5g',
    '52-54-00-12-34-56%0aexit',
    '..%2f..%2fetc',
    '%00',
    '%F0%9F%92%A9',
    '5'.repeat(10_000),
  ]) {
    for (const [path, init] of [
      [`/pxe/${mac}`, {}],
      [`/pxe/${mac}/done`, { method: 'POST' }],
      [`/pxe/${mac}/provision/user-data`, {}],
      [`/machines/${mac}`, asJson({}, 'PUT')],
      [`/machines/${mac}`, { method: 'DELETE' }],
      [`/machines/${mac}/provision/user-data`, put('x')],
      [`/machines/${mac}/workflows`, {}],
    ] as const) {
      const { status } = await ask(path, init)
      assert.ok([400, 404, 414].includes(status), `${path.slice(0, 60)}: ${status}`)
    }
  }
  assert.is(await server.machines.count(), before)
})

test('an image of any name makes a script that is one, and no more', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  for (const name of [
    `${'ü'.repeat(125)}.img`,
    'a || shell.img',
    '${mac}.img',
    'a; reboot #.img',
    '"quoted" \'twice\'.img',
    '<img src=x onerror=alert(1)>.img',
  ]) {
    assert.is((await ask(`/images/${encodeURIComponent(name)}`, put('x'))).status, 200)
    const body = { image: name, boot_policy: 'flash', provisioning_mode: 'cloud-init' }
    assert.is((await ask(`/machines/${MAC}`, asJson(body, 'PUT'))).status, 200)
    const script = await readScript(server)
    assert.ok(Buffer.byteLength(script) < 4096, `${Buffer.byteLength(script)} bytes`)
    assert.is(script.match(/^kernel /gm)?.length, 1)
    assert.not.match(script, /\|\| shell|\$\{mac|; reboot|<img|"/)
    for (const page of ['/ui/images', '/ui/machines', `/ui/machines/${MAC}`, '/ui/events']) {
      assert.not.match(await (await ask(page)).text(), '<img src=x', page)
    }
  }
})

test('uploads of one name at the same time: one of them is there, whole', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  const bodies = ['a', 'b', 'c', 'd', 'e', 'f'].map((letter) => letter.repeat(300_000))
  const answers = await Promise.all(bodies.map((body) => ask('/images/same.img', put(body))))
  assert.equal(new Set(answers.map(({ status }) => status)), new Set([200]))
  const kept = await (await ask('/images/same.img')).text()
  assert.ok(bodies.includes(kept))
  assert.equal(await readdir(server.images), ['same.img'])
})

test('machines written at the same time: no record is a mixture', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  const names = Array.from({ length: 20 }, (_, at) => `host-${at}`)
  const write = (name: string) =>
    ask(`/machines/${MAC}`, asJson({ hostname: name, image: `${name}.img` }, 'PUT'))
  const answers = await Promise.all(names.map(write))
  assert.equal(new Set(answers.map(({ status }) => status)), new Set([200]))
  const { hostname, image } = await (await ask(`/machines/${MAC}`)).json()
  assert.is(image, `${hostname}.img`)
})

test('what is uploaded is never run on the server', async () => {
  await using fixture = await createWorkflowFixture()
  await using server = await createEarlierServer({ env: fixture.env })
  const ask = await server.operator()
  const script = `touch ${fixture.dir}/was-run`
  const bind = async (workflow: string) => {
    const body = { provisioning_mode: 'cijoe-online', hostname: '127.0.0.1' }
    await ask(`/machines/${MAC}`, asJson({ ...body, cijoe_workflow_ref: workflow }, 'PUT'))
  }
  await ask(`/machines/${MAC}`, asJson({}, 'PUT'))
  await ask(`/machines/${MAC}/provision/cijoe-workflow`, put(script))
  await ask('/images/workflow.yaml', put(script))
  await ask('/boot/workflow.yaml', put(script))
  const way = join(fixture.dir, 'way')
  await run`ln -s ${server.images} ${way}`
  for (const path of [
    join(server.dir, 'state/provision/52-54-00-12-34-56/cijoe-workflow'),
    join(server.images, 'workflow.yaml'),
    join(server.boot, 'workflow.yaml'),
    join(way, 'workflow.yaml'),
    join(server.boot, '../images/workflow.yaml'),
  ]) {
    await bind(path)
    await server.request(`/pxe/${MAC}/done`, { method: 'POST' })
    const failed = await eventually(async () => {
      const [last] = await (await ask(`/machines/${MAC}/workflows`)).json()
      return last?.workflow === path && last.error !== null ? last : null
    }, path)
    assert.match(failed.error, /uploads/)
  }
  assert.not.ok((await readdir(fixture.dir)).includes('was-run'))
})

test('a folder that bears the name of an image is neither served nor replaced', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  await mkdir(join(server.images, 'folder.img'))
  assert.is((await ask('/images/folder.img')).status, 404)
  assert.is((await ask('/images/folder.img', put('x'))).status, 409)
  assert.equal(await readdir(server.images), ['folder.img'])
})

test('whoever may not upload is refused before the body has come', async () => {
  await using server = await createEarlierServer()
  await using socket = await listen(server)
  for (const path of ['/images/a.img', '/boot/a', `/machines/${MAC}/provision/user-data`]) {
    const asked = request(`${socket.url}${path}`, { method: 'PUT' })
    asked.on('error', () => {}) // The server may hang up: it does not want the rest.
    asked.write('the first of very many bytes')
    const [answer] = await once(asked, 'response')
    assert.is(answer.statusCode, 401, path)
    asked.destroy()
  }
  assert.equal(await readdir(server.images), [])
})

test.run()
