/** `pnpm start --proxy` and what goes wrong beside it: servers with boot files of their own, ports that are taken, a dnsmasq that is killed. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createDnsmasqHost, HOST_ADDRESS } from '#test/support/net/dnsmasq-host.ts'
import {
  layBootFiles,
  listUdp,
  pidOfDnsmasq,
  runProxy,
  startOwnProxy,
} from '#test/support/net/own-proxy.ts'
import { waitUntil } from '#test/support/waiting.ts'

const test = suite('pnpm start --proxy and its neighbours')
const NETWORK = '192.168.98.0/24'

test('beside a server with a boot file of its own; off and on; dnsmasq killed; the address gone', async () => {
  await using host = await createDnsmasqHost()
  await layBootFiles(host)
  const inHost = ([program = '', ...words]: readonly string[]) =>
    assert.is(spawnSync('ip', ['netns', 'exec', host.enter[3] ?? '', program, ...words]).status, 0)
  await using proxy = await startOwnProxy(host)
  await proxy.saw(({ state, networks }) => state === 'answering' && networks[0]?.answers !== null)
  assert.match(await proxy.get('/ui/dhcp'), 'No DHCP server answered our question')

  // Another server comes, with a boot file of its own.
  await host.openWire(['--dhcp-boot=pxelinux.0'])
  assert.match(await proxy.post('/ui/dhcp/proxy-off'), /^303 .*name="network"/s)
  await proxy.saw(({ state }) => state === 'waiting')
  assert.is(listUdp(host), '')
  const on = await proxy.post('/ui/dhcp/proxy', { network: NETWORK })
  assert.match(on, 'Turn off')
  const { networks } = await proxy.saw((report) => (report.networks[0]?.answers?.length ?? 0) > 0)
  assert.equal(networks[0]?.answers, [{ by: '192.168.98.50', assigns: true, file: 'pxelinux.0' }])
  assert.match(await proxy.get('/ui/dhcp'), 'sends its own boot file, pxelinux.0')
  assert.match(await proxy.post('/ui/dhcp/proxy', { network: 'all' }), /networks? like/)

  // dnsmasq is killed, and the interface goes and comes back.
  const killed = pidOfDnsmasq(host)
  process.kill(killed, 'SIGKILL')
  await proxy.saw(({ state, restarts }) => state === 'answering' && restarts === 1)
  assert.is.not(pidOfDnsmasq(host), killed)
  inHost(['ip', 'addr', 'del', `${HOST_ADDRESS}/24`, 'dev', 'lan0'])
  await proxy.saw(({ left }) => left[0]?.name === NETWORK)
  assert.is(listUdp(host), '')
  inHost(['ip', 'addr', 'add', `${HOST_ADDRESS}/24`, 'dev', 'lan0'])
  await proxy.saw(({ state }) => state === 'answering')
})

test('a port that another program has is named, and that program is left alone', async () => {
  await using host = await createDnsmasqHost()
  await layBootFiles(host)
  const tftp = join(host.folder, 'tftp')
  const range = 'port=0\ninterface=lan0\nbind-interfaces\ndhcp-range=192.168.98.60,192.168.98.70\n'
  const dhcp = await host.serve(range)
  await using proxy = await startOwnProxy(host, { args: [`--proxy=${NETWORK}`] })
  const taken = await proxy.saw(({ state }) => state === 'failed')
  assert.match(taken.why ?? '', /UDP port 67 of this host is in use by dnsmasq \(process \d+\)/)
  assert.match(await proxy.get('/ui/dhcp'), 'UDP port 67 of this host is in use')
  await dhcp[Symbol.asyncDispose]()

  // As on an appliance, whose dnsmasq serves the boot loaders.
  await using _ = await host.serve(`port=0\nenable-tftp\ntftp-root=${tftp}\n`)
  const empty = await proxy.saw(({ why }) => why?.includes('UDP port 69') === true)
  assert.match(empty.why ?? '', 'which does not serve our boot loaders')
  await writeFile(join(tftp, 'ipxe.efi'), 'of another')
  const shared = await proxy.saw(({ state }) => state === 'answering')
  assert.match(shared.tftpBy ?? '', /^dnsmasq \(process \d+\)$/)
  assert.is(await host.fetchByTftp('ipxe.efi'), 'of another')
})

test('as the units run them: the server gains nothing, and the proxy ends with the wish', async () => {
  const file = 'overlays/service/usr/lib/systemd/system/flasher-proxy.service'
  const unit = await readFile(file, 'utf8')
  // The wish goes with the server, and what follows it starts with the server, also after an upgrade.
  const web = await readFile(file.replace('proxy', 'web'), 'utf8')
  assert.match(web, /^Wants=.* flasher-proxy\.path$[^]*^RuntimeDirectory=flasher-web$/m)
  const path = await readFile(file.replace('.service', '.path'), 'utf8')
  for (const text of [unit, path]) assert.match(text, 'PathExists=/run/flasher-web/wish.json\n')
  await using host = await createDnsmasqHost()
  await layBootFiles(host)
  await using proxy = await startOwnProxy(host, { uid: 64_123 })
  assert.match(await proxy.get('/ui/dhcp'), 'Turn on for 192.168.98.0/24')
  const form = { network: NETWORK }
  assert.match(await proxy.post('/ui/dhcp/proxy', form), 'No proxy runs on this host')
  const ended = proxy.runUnit(unit)
  await proxy.saw(({ state, networks }) => state === 'answering' && networks[0]?.answers !== null)
  assert.match(await proxy.get('/ui/dhcp'), 'No machine has asked yet')
  assert.is(await host.fetchByTftp('ipxe.efi'), 'ipxe.efi'.repeat(1000))

  // Whatever a server that was taken over writes, root follows none of it.
  await writeFile(proxy.wish, '{"networks": ["0.0.0.0/0"], "port": "/etc/passwd"}')
  await proxy.saw(({ state, why }) => state === 'failed' && why === 'the wish names no port')
  assert.is(listUdp(host), '')
  await rm(proxy.wish)
  await symlink('/etc/shadow', proxy.wish)
  await proxy.saw(({ state }) => state === 'failed')
  await proxy.post('/ui/dhcp/proxy-off')
  await rm(proxy.wish, { force: true })
  assert.is(await ended, 0)
  assert.is(listUdp(host), '')
  assert.is(proxy.isRunning(), false)
})

test('two networks: each is told its own address; the flag counts before the settings', async () => {
  await using host = await createDnsmasqHost()
  await layBootFiles(host)
  const second = await host.addWire()
  const file = join(host.folder, 'site.toml')
  await writeFile(file, '[dhcp]\nproxy = ["10.9.0.0/16"]\n')
  const args = [`--proxy=${NETWORK},192.168.97.0/24`, '--config', file]
  await using proxy = await startOwnProxy(host, { args })
  await proxy.saw(({ state }) => state === 'answering')
  for (const address of [HOST_ADDRESS, second])
    assert.match(await host.fetchByTftp('autoexec.ipxe', address), `http://${address}:8123/`)
  assert.match(await proxy.get('/ui/dhcp'), 'UDP ports 67, 69 and 4011 and TCP port 8123')

  // Another card's address changes nothing. A survey of both networks takes as long.
  const before = pidOfDnsmasq(host)
  const words = ['ip', 'addr', 'add', '10.77.0.1/24', 'dev', 'lan1']
  assert.is(spawnSync('ip', ['netns', 'exec', host.enter[3] ?? '', ...words]).status, 0)
  await proxy.saw(({ networks }) => networks.every(({ answers }) => answers !== null))
  assert.is(pidOfDnsmasq(host), before)
})

test('the folder is its own alone, and the wish of a server that was killed is not followed', async () => {
  await using host = await createDnsmasqHost()
  const [wishes, folder] = [join(host.folder, 'wishes'), join(host.folder, 'own')]
  for (const one of [wishes, folder]) await mkdir(one)
  const letter = join(folder, 'letter')
  await writeFile(letter, 'not yours')
  const refused = runProxy(host, wishes, folder)
  await refused.ended
  assert.match(refused.said(), `${folder} holds letter, which is not the proxy's`)
  assert.is(await readFile(letter, 'utf8'), 'not yours')
  await rm(letter)

  const wish = join(wishes, 'wish.json')
  await writeFile(wish, JSON.stringify({ networks: [NETWORK], port: 8123, revision: 'a' }))
  await utimes(wish, 1e9, 1e9)
  const follow = async () => {
    const started = runProxy(host, wishes, folder)
    await waitUntil(async () => started.said().includes('older than a minute'), started.said)
    return started
  }
  const first = await follow()
  const other = runProxy(host, wishes, folder)
  await other.ended
  assert.match(other.said(), `another proxy uses ${folder}`)
  assert.ok(existsSync(join(folder, 'report.json')))
  first.child.kill('SIGKILL')
  await first.ended
  // Said once, though it was tried again.
  assert.is(first.said().split('older than a minute').length, 2)
  const next = await follow()
  next.child.kill('SIGTERM')
  await next.ended
  assert.is(existsSync(folder), false)
  assert.is(listUdp(host), '')
})

test('by somebody who is not root, with sudo', async () => {
  await using host = await createDnsmasqHost()
  await layBootFiles(host)
  await using proxy = await startOwnProxy(host, { isSudoer: true })
  assert.match(proxy.said(), 'answers as root, so sudo asks')
  await proxy.saw(({ state }) => state === 'answering')
  assert.match(await proxy.get('/ui/dhcp'), 'No machine has asked yet')
  await proxy[Symbol.asyncDispose]()
  assert.is(proxy.isRunning(), false)
  assert.is(listUdp(host), '')
})

test('beside Kea, whose own boot file is named', async () => {
  await using host = await createDnsmasqHost()
  await layBootFiles(host)
  await using _ = await host.serveByKea('kea.efi')
  await using proxy = await startOwnProxy(host)
  const { networks } = await proxy.saw((report) => (report.networks[0]?.answers?.length ?? 0) > 0)
  assert.equal(networks[0]?.answers, [{ by: '192.168.98.50', assigns: true, file: 'kea.efi' }])
})

test.run()
