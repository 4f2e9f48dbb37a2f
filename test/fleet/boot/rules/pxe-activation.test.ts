import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  decideDhcpTarget,
  parseActivation,
  planActivation,
  renderActivation,
  renderNetwork,
} from '#fleet/boot/rules/dhcp.ts'

const test = suite('PXE activation')
const ADDRESSES = [
  { device: 'eth0', address: '192.168.1.10', prefix: 24, family: 4 },
  { device: 'eth0', address: '10.1.2.3', prefix: 22, family: 4 },
  { device: 'eth0', address: '2001:db8::1', prefix: 64, family: 6 },
  { device: 'eth0.10', address: '172.16.0.1', prefix: 30, family: 4 },
  { device: 'wan', address: '192.0.2.1', prefix: 32, family: 4 },
  { device: 'six', address: '2001:db8::2', prefix: 64, family: 6 },
  { device: 'a,b', address: '10.9.0.1', prefix: 24, family: 4 },
  { device: 'eth*', address: '10.8.0.1', prefix: 24, family: 4 },
] as const

const plan = (device: string, subnet: string, port = '8080') =>
  planActivation({ device, subnet, port }, ADDRESSES)

test('a subnet of the interface, with host bits or without, with a prefix or without', () => {
  for (const [device, subnet, address, network] of [
    ['eth0', '192.168.1.0', '192.168.1.10', '192.168.1.0'],
    ['eth0', '192.168.1.0/24', '192.168.1.10', '192.168.1.0'],
    ['eth0', '192.168.1.77/24', '192.168.1.10', '192.168.1.0'],
    ['eth0', '10.1.0.0/22', '10.1.2.3', '10.1.0.0'],
    ['eth0', '10.1.3.255', '10.1.2.3', '10.1.0.0'],
    ['eth0.10', '172.16.0.0/30', '172.16.0.1', '172.16.0.0'],
  ] as const) {
    const planned = plan(device, subnet)
    assert.ok(planned.ok, subnet)
    if (!planned.ok) continue
    const { target } = planned.value
    assert.equal([target.address, target.network], [address, network], subnet)
    assert.is(target.baseUrl, `http://${address}:8080`)
  }
})

test('everything else is refused, and why', () => {
  for (const [device, subnet, port, refusal] of [
    ['eth1', '192.168.1.0', '8080', 'no-interface'],
    ['', '192.168.1.0', '8080', 'no-interface'],
    ['a,b', '10.9.0.0', '8080', 'no-interface'],
    ['eth*', '10.8.0.0', '8080', 'no-interface'],
    ['eth0\n', '192.168.1.0', '8080', 'no-interface'],
    ['six', '192.168.1.0', '8080', 'no-ipv4'],
    ['wan', '192.0.2.1', '8080', 'not-its-subnet'],
    ['eth0', '192.168.2.0', '8080', 'not-its-subnet'],
    ['eth0', '192.168.0.0/16', '8080', 'not-its-subnet'],
    ['eth0', '192.168.1.0/25', '8080', 'not-its-subnet'],
    ['eth0', '192.168.1.0/31', '8080', 'not-a-subnet'],
    ['eth0', '192.168.1.0/024', '8080', 'not-a-subnet'],
    ['eth0', '192.168.1.0/24/24', '8080', 'not-a-subnet'],
    ['eth0', '192.168.1', '8080', 'not-a-subnet'],
    ['eth0', '192.168.1.256', '8080', 'not-a-subnet'],
    ['eth0', '0300.168.1.0', '8080', 'not-a-subnet'],
    ['eth0', '192.168.1.0\ninterface=wan', '8080', 'not-a-subnet'],
    ['eth0', '::', '8080', 'not-a-subnet'],
    ['eth0', '', '8080', 'not-a-subnet'],
    ['eth0', '192.168.1.0', '', 'not-a-port'],
    ['eth0', '192.168.1.0', '0', 'not-a-port'],
    ['eth0', '192.168.1.0', '08', 'not-a-port'],
    ['eth0', '192.168.1.0', '65536', 'not-a-port'],
    ['eth0', '192.168.1.0', '80/x', 'not-a-port'],
    ['eth0', '192.168.1.0', '1e3', 'not-a-port'],
  ] as const) {
    const planned = plan(device, subnet, port)
    assert.is(planned.ok ? 'planned' : planned.refusal, refusal, `${device} ${subnet} ${port}`)
  }
})

test('the file is read back, also that of a deployed server', () => {
  const planned = plan('eth0', '10.1.0.0', '8123')
  if (!planned.ok) throw new Error(planned.refusal)
  assert.equal(parseActivation(renderActivation(planned.value)), {
    device: 'eth0',
    network: '10.1.0.0',
    port: 8123,
    loader: 'ipxe',
  })
  const deployed = [
    'bind-dynamic',
    'interface=enp1s0',
    'dhcp-range=192.168.1.0,proxy',
    'dhcp-boot=tag:ipxe,http://${next-server}:8080/pxe-bootstrap.ipxe',
  ].join('\n')
  assert.equal(parseActivation(deployed), {
    device: 'enp1s0',
    network: '192.168.1.0',
    port: 8080,
    loader: 'ipxe',
  })
  assert.is(parseActivation('interface=eth0\n#dhcp-range=192.168.1.0,proxy\n'), null)
  assert.is(parseActivation(''), null)
})

test('with the signed loaders, for UEFI machines alone', () => {
  const request = { device: 'eth0', subnet: '10.1.0.0', port: '8080', loader: 'grub' } as const
  const planned = planActivation(request, ADDRESSES)
  const text = planned.ok ? renderActivation(planned.value) : ''
  assert.match(text, 'x86PC,"flasher",undionly.kpxe,')
  assert.match(text, 'X86-64_EFI,"flasher",shimx64.efi,')
  assert.match(text, 'dhcp-boot=tag:ipxe,http://10.1.2.3:8080/pxe-bootstrap.ipxe')
  assert.is(parseActivation(text)?.loader, 'grub')
})

test('a network in one word', () => {
  const [first] = ADDRESSES
  assert.is(renderNetwork(first), '192.168.1.0/24')
  assert.is(renderNetwork(ADDRESSES[2]), null)
})

const HOST = [
  { address: '10.0.0.5', prefix: 22, family: 4 },
  { address: '192.0.2.5', prefix: 25, family: 4 },
  { address: '2001:db8::5', prefix: 64, family: 6 },
] as const

test('the address that the operator used, where machines can use it', () => {
  const rows = [
    ['http://192.0.2.5:8080', '192.0.2.5', 25, 'http://192.0.2.5:8080'],
    ['http://localhost:8080', '10.0.0.5', 22, 'http://10.0.0.5:8080'],
    ['http://127.0.0.1', '10.0.0.5', 22, 'http://10.0.0.5'],
    ['http://[::1]:9', '10.0.0.5', 22, 'http://10.0.0.5:9'],
    ['https://flasher.example/x', '10.0.0.5', 22, 'https://flasher.example/x'],
    ['http://203.0.113.7:80', '203.0.113.7', 24, 'http://203.0.113.7:80'],
  ] as const
  for (const [base, address, prefix, baseUrl] of rows) {
    const target = decideDhcpTarget(base, HOST, 'ipxe')
    assert.equal([target?.address, target?.prefix, target?.baseUrl], [address, prefix, baseUrl])
  }
})

test('nothing where there is nothing to tell', () => {
  assert.is(decideDhcpTarget('http://localhost:8080', [], 'ipxe'), null)
  assert.is(decideDhcpTarget('http://h/"', HOST, 'ipxe'), null)
  assert.is(decideDhcpTarget('no address', HOST, 'ipxe'), null)
})

test.run()
