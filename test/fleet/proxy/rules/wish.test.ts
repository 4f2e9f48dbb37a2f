/** The wish, which may hold anything, and what root makes of it. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseOffer, renderDiscover } from '#fleet/proxy/rules/dhcp-packet.ts'
import { findHolder } from '#fleet/proxy/rules/ports.ts'
import {
  isWishOld,
  listMissingFiles,
  parseWish,
  planProxy,
  type ProxyWish,
  renderProxyConfiguration,
} from '#fleet/proxy/rules/wish.ts'

const test = suite('the wish of the proxy')
const WISH: ProxyWish = {
  networks: ['192.0.2.0/24'],
  port: 8080,
  hasOthers: false,
  revision: 'a1',
}
const ADDRESSES = [
  { device: 'eth0', address: '192.0.2.10', prefix: 24, family: 4 },
  { device: 'eth1', address: '10.1.2.3', prefix: 16, family: 4 },
] as const
const PLACES = { tftp: '/r/tftp' }

test('every field is checked', () => {
  assert.equal(parseWish(JSON.stringify(WISH)), { ok: true, value: WISH })
  for (const wrong of [
    '',
    'null',
    '[]',
    '{"__proto__": 1}',
    '\0'.repeat(100),
    { ...WISH, networks: [] },
    { ...WISH, networks: 'all' },
    { ...WISH, networks: ['192.0.2.0/24\ndhcp-script=/bin/sh'] },
    { ...WISH, networks: Array.from({ length: 17 }, () => '192.0.2.0/24') },
    { ...WISH, port: '8080' },
    { ...WISH, port: 0 },
    { ...WISH, port: 80.5 },
    { ...WISH, revision: '../x' },
    { ...WISH, revision: 'x'.repeat(65) },
  ]) {
    const text = typeof wrong === 'string' ? wrong : JSON.stringify(wrong)
    assert.is(parseWish(text).ok, false, text)
  }
})

test('only networks of this host are served, each with its own address', () => {
  const wish = { ...WISH, networks: ['192.0.2.0/24', '10.1.0.0/16', '10.9.0.0/16', '300.1.1.1/24'] }
  const plan = planProxy(wish, ADDRESSES)
  assert.equal(
    plan.served.map(({ name, device, target }) => [name, device, target.baseUrl]),
    [
      ['192.0.2.0/24', 'eth0', 'http://192.0.2.10:8080'],
      ['10.1.0.0/16', 'eth1', 'http://10.1.2.3:8080'],
    ],
  )
  assert.equal(
    plan.left.map(({ name }) => name),
    ['10.9.0.0/16', '300.1.1.1/24'],
  )
  const lines = renderProxyConfiguration(plan, PLACES).split('\n')
  for (const line of [
    'port=0',
    'bind-dynamic',
    'interface=eth0',
    'interface=eth1',
    'dhcp-range=set:net0,192.0.2.0,proxy,255.255.255.0',
    'dhcp-range=set:net1,10.1.0.0,proxy,255.255.0.0',
    'pxe-service=tag:net1,tag:!ipxe,X86-64_EFI,"flasher",ipxe.efi,10.1.2.3',
    'dhcp-boot=tag:net0,tag:ipxe,http://192.0.2.10:8080/pxe-bootstrap.ipxe,,192.0.2.10',
    'dhcp-boot=tag:net1,tag:http,tag:!ipxe,http://10.1.2.3:8080/boot/shimx64.efi',
    'enable-tftp',
    'tftp-root=/r/tftp/eth0,eth0',
    'tftp-root=/r/tftp/eth1,eth1',
  ])
    assert.ok(lines.includes(line), line)
  assert.equal(
    lines.filter((line) => /^(dhcp-script|conf-|addn-)/.test(line)),
    [],
  )
  const shared = renderProxyConfiguration(plan, { tftp: null })
  assert.not.match(shared, 'tftp')
})

test('the wish of a server that was killed is old after a minute', () => {
  assert.equal(
    [-61_000, -9000, 0, 59_000, 61_000, Number.NaN].map((ms) => isWishOld(1e12, 1e12 + ms)),
    [true, false, false, false, true, true],
  )
})

const missing = (present: readonly string[]) => listMissingFiles(present).map(({ file }) => file)

test('what is missing is said', () => {
  assert.equal(missing(['undionly.kpxe']), ['ipxe.efi'])
  assert.equal(missing(['ipxe.efi', 'undionly.kpxe']), [])
})

test('a port is taken only where it is in our way', () => {
  const own = [{ device: 'lan0', address: '192.168.98.1' }]
  const rows = `UNCONN 0      0                        0.0.0.0%virbr0:67   0.0.0.0:* users:(("dnsmasq",pid=22567,fd=4))
UNCONN 0      0                             127.0.0.1:69   0.0.0.0:* users:(("in.tftpd",pid=2,fd=8))
UNCONN 0      0      [fe80::4c09:8aff:fe36:39a7]%lan0:4011      [::]:* users:(("x",pid=3,fd=13))`
  for (const port of [67, 69, 4011]) assert.is(findHolder(rows, port, own), null)
  const taken = (local: string) => findHolder(`UNCONN 0 0 ${local} 0.0.0.0:* ${USERS}`, 67, own)
  for (const local of ['0.0.0.0:67', '*:67', '[::]:67', '0.0.0.0%lan0:67', '192.168.98.1:67'])
    assert.equal(taken(local), { words: 'dhcpd (process 812)' }, local)
  assert.equal(findHolder('UNCONN 0 0 0.0.0.0:67 0.0.0.0:*', 67, own), {
    words: 'another program (as root, "ss -lunp" names it)',
  })
  assert.is(findHolder('\0\n\n x', 67, own), null)
})

const USERS = 'users:(("dhcpd",pid=812,fd=7))'

function offer(options: readonly number[]): Buffer {
  const head = renderDiscover(7).subarray(0, 240)
  head[0] = 2
  return Buffer.concat([head, Buffer.from(options)])
}

test('offers of other servers are read, and nothing else', () => {
  const server = [54, 4, 192, 0, 2, 1]
  const named = offer([53, 1, 2, ...server, 67, 3, 97, 46, 98, 255])
  assert.equal(parseOffer(named, 7), { by: '192.0.2.1', assigns: false, file: 'a.b' })
  named.set([10, 0, 0, 5], 16)
  assert.is(parseOffer(named, 7)?.assigns, true)
  assert.is(parseOffer(named, 8), null)
  for (const bytes of [
    Buffer.alloc(0),
    renderDiscover(7),
    offer([]),
    offer([53, 1, 5, ...server, 255]),
    offer([53, 1, 2, 54, 200, 1]),
    offer([53]),
  ])
    assert.is(parseOffer(bytes, 7), null)
})

test.run()
