import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { decideDhcpTarget } from '#fleet/boot/rules/dhcp.ts'

const test = suite('the address of this host for DHCP servers')

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
