/** What a server of several tells boot loaders: `[pxe] servers` in every script, and nothing where it is empty. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { z } from 'zod'
import { createLeaderless } from '#server/routes/contact.ts'
import { MAC, setOf } from '#test/support/server/machine-fixture.ts'
import { asJson, createTestServer } from '#test/support/server/server.ts'

const test = suite('several servers')

const HOST = '10.0.0.1:8080'
const [OWN, OTHER] = [`http://${HOST}`, 'http://10.0.0.2:8080']
const HEADERS = { host: HOST }
const PATHS = [`/pxe/${MAC}`, `/pxe/${MAC}.grub`, '/boot/autoexec.ipxe', '/grub/grub.cfg']

async function readScripts(servers: readonly string[] = []) {
  await using server = await createTestServer({ env: { FLASHER_PXE_SERVERS: servers.join(',') } })
  const { vmlinuz, initrd, squashfs } = setOf('x86_64')
  for (const name of [vmlinuz, initrd, squashfs]) await server.putBootFile(name, 'bytes')
  const read = async (path: string) => (await server.request(path, { headers: HEADERS })).text()
  const bootstrap = await read('/pxe-bootstrap.ipxe')
  return { bootstrap, scripts: await Promise.all(PATHS.map(read)) }
}

test('each script names the other server, the bootstrap keeps its one chain', async () => {
  const { bootstrap, scripts } = await readScripts([OWN, OTHER])
  const [ipxe = '', grub = '', autoexec = '', config = ''] = scripts
  assert.match(ipxe, `chain --timeout 3000 --autofree ${OTHER}/pxe/52-54-00-12-34-56 && exit ||`)
  for (const script of [ipxe, grub]) {
    assert.match(script, ` flasher.server=${OWN} flasher.servers=${OTHER} `)
  }
  assert.match(grub, `source "(http,10.0.0.2:8080)/pxe/${MAC}.grub?`)
  assert.match(autoexec, `chain --timeout 3000 ${OTHER}/pxe/`)
  assert.match(config, 'set server="10.0.0.2:8080"')
  assert.is(bootstrap.match(/^chain /gm)?.length, 1)
  assert.not.match(bootstrap, /timeout|10\.0\.0\.2/)
})

const RunsSchema = z.object({ runs: z.array(z.object({ server: z.string().nullable() })) })

/** The servers of the machine's runs, after its posts at these addresses. */
async function reportAt(hosts: readonly string[], servers: readonly string[]) {
  await using server = await createTestServer({ env: { FLASHER_PXE_SERVERS: servers.join(',') } })
  await server.request(`/pxe/${MAC}`, { headers: HEADERS })
  for (const [at, host] of hosts.entries()) {
    const phase = ['started', 'write', 'done'][at]
    const figures = { bytes_read: at, bytes_written: at, total_bytes: 9, rate: 1, eta_seconds: 1 }
    const { headers, ...post } = asJson({ run: 'aaaaaaaa-1', phase, ...figures })
    const sent = { ...post, headers: { ...headers, host } }
    assert.is((await server.request(`/pxe/${MAC}/progress`, sent)).status, 204)
  }
  const ask = await server.operator()
  const answer = RunsSchema.parse(await (await ask(`/machines/${MAC}/runs`)).json())
  return answer.runs.map((run) => run.server)
}

test('a run says which server heard of it last, where there are several', async () => {
  const both = [OWN, OTHER]
  assert.equal(await reportAt([HOST], both), [OWN])
  assert.equal(await reportAt([HOST, HOST, '10.0.0.2:8080'], both), [OTHER])
  assert.equal(await reportAt([HOST, '10.0.0.2:8080'], []), [null])
})

test('an empty list, and one with this server alone, change nothing', async () => {
  const plain = await readScripts(undefined)
  assert.equal(await readScripts([]), plain)
  assert.equal(await readScripts([OWN]), plain)
})

test('a machine that waits for a server that leads asks all of them', () => {
  const render = createLeaderless({
    findDiskScript() {
      throw new Error('the machine has only just begun to wait')
    },
    otherServers: (base) => (base === OWN ? [OTHER] : []),
  })
  const contact = { now: new Date().toISOString(), baseUrl: OWN, ip: null, bearer: null, query: {} }
  const script = render(MAC, contact)
  assert.match(script, 'no server leads this fleet')
  assert.match(script, ` || chain --timeout 3000 --replace --autofree ${OTHER}/pxe/`)
})

test.run()
