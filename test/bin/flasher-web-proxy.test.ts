/** `pnpm start --proxy` beside another DHCP server: what machines are told, what the page shows, and what it leaves. */
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { fillTftpFolder } from '#fleet/proxy/proxy-files.ts'
import { createDnsmasqHost, HOST_ADDRESS } from '#test/support/net/dnsmasq-host.ts'
import { layBootFiles, listUdp, startOwnProxy } from '#test/support/net/own-proxy.ts'

const test = suite('pnpm start --proxy')
const MAC = '52:54:00:12:34:56'
const [BIOS, UEFI, HTTP, HTTP_ARM] = [0, 7, 16, 19]

test('every kind of firmware is told what to boot, and the page shows it', async () => {
  await using host = await createDnsmasqHost()
  await layBootFiles(host)
  await using proxy = await startOwnProxy(host)
  await proxy.saw(({ state }) => state === 'answering')

  const offer = { yours: '0.0.0.0', next: HOST_ADDRESS, by: HOST_ADDRESS, vendor: 'PXEClient' }
  const boot = `http://${HOST_ADDRESS}:8123/boot`
  const script = `http://${HOST_ADDRESS}:8123/pxe-bootstrap.ipxe`
  assert.equal(await host.ask(UEFI, 'firmware'), { ...offer, file: 'ipxe.efi' })
  assert.equal(await host.ask(UEFI, 'ipxe'), { ...offer, file: script })
  const http = { ...offer, vendor: 'HTTPClient' }
  assert.equal(await host.ask(HTTP, 'http'), { ...http, file: `${boot}/shimx64.efi` })
  assert.equal(await host.ask(HTTP_ARM, 'http'), { ...http, file: `${boot}/shimaa64.efi` })
  assert.equal(await host.ask(BIOS, 'firmware'), { ...offer, file: 'undionly.kpxe' })
  assert.is(await host.fetchByTftp('ipxe.efi'), 'ipxe.efi'.repeat(1000))
  assert.match(await host.fetchByTftp('autoexec.ipxe'), 'pxe')
  const heard = await proxy.saw(({ clients }) => clients[0]?.loaded?.file === 'autoexec.ipxe')
  assert.equal(
    heard.clients.map(({ mac, arch, file, address }) => [mac, arch, file, address]),
    [[MAC, BIOS, 'undionly.kpxe', '192.168.98.50']],
  )
  const page = await proxy.get('/ui/dhcp')
  assert.match(page, MAC)
  assert.match(page, 'got undionly.kpxe, fetched autoexec.ipxe')

  await proxy[Symbol.asyncDispose]()
  assert.is(proxy.isRunning(), false)
  assert.is(listUdp(host), '')
})

test('a network that is not here is refused, with those that are', async () => {
  await using host = await createDnsmasqHost()
  await using proxy = await startOwnProxy(host, { args: ['--proxy=10.0.0.0/8'] })
  assert.match(proxy.said(), '10.0.0.0/8 is no network of this host: 192.168.98.0/24 (lan0)')
  assert.is(proxy.isRunning(), false)
  assert.match(await proxy.get('/ui/dhcp'), 'Turn on for 192.168.98.0/24')
})

test('where machines cannot reach the server, no proxy is started', async () => {
  await using host = await createDnsmasqHost()
  const file = join(host.folder, 'site.toml')
  await writeFile(file, '[server]\nhost = "127.0.0.1"\n')
  await using proxy = await startOwnProxy(host, { args: ['--proxy', '--config', file] })
  assert.match(proxy.said(), '--proxy: This server listens on 127.0.0.1 only')
  assert.is(proxy.isRunning(), false)
})

test('only what the server says it does not have may be missing', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-tftp-'))
  let status = 404
  const server = createServer((_, answer) => answer.writeHead(status).end()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const place = server.address()
  const port = typeof place === 'object' ? place?.port : 0
  const fill = () =>
    fillTftpFolder(folder, `http://127.0.0.1:${port}`, new AbortController().signal)
  assert.is((await fill())?.includes('autoexec.ipxe'), false)
  for (status of [503, 302, 403]) assert.is(await fill(), null)
  server.close()
  await rm(folder, { recursive: true })
})

test.run()
