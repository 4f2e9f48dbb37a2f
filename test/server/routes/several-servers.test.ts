/** What a server of several tells boot loaders: `[pxe] servers` in every script, and nothing where it is empty. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { MAC, setOf } from '../../support/server/machine-fixture.ts'
import { createTestServer, type TestServerOptions } from '../../support/server/server.ts'

const test = suite('several servers')

const HOST = '10.0.0.1:8080'
const [OWN, OTHER] = [`http://${HOST}`, 'http://10.0.0.2:8080']
const HEADERS = { host: HOST }
const PATHS = [`/pxe/${MAC}`, `/pxe/${MAC}.grub`, '/boot/autoexec.ipxe', '/grub/grub.cfg']

async function readScripts(servers: TestServerOptions['servers']) {
  await using server = await createTestServer(servers === undefined ? {} : { servers })
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

test('an empty list, and one with this server alone, change nothing', async () => {
  const plain = await readScripts(undefined)
  assert.equal(await readScripts([]), plain)
  assert.equal(await readScripts([OWN]), plain)
})

test.run()
