/** The blocks of docs/dhcp.md as they are there, against what firmware sends: each machine gets its own first file. */
import { readFileSync } from 'node:fs'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createDnsmasqHost, HOST_ADDRESS } from '#test/support/net/dnsmasq-host.ts'

const test = suite('DHCP blocks')

const BOOT = `http://${HOST_ADDRESS}:8080`
/** Option 93 as firmware sends it, who asks, the vendor class that it wants back, and its file. */
const MACHINES = [
  [0, 'firmware', 'PXEClient', 'undionly.kpxe'],
  [7, 'firmware', 'PXEClient', 'shimx64.efi'],
  [9, 'firmware', 'PXEClient', 'shimx64.efi'],
  [11, 'firmware', 'PXEClient', 'shimaa64.efi'],
  [16, 'http', 'HTTPClient', `${BOOT}/boot/shimx64.efi`],
  [19, 'http', 'HTTPClient', `${BOOT}/boot/shimaa64.efi`],
  [0, 'ipxe', 'PXEClient', `${BOOT}/pxe-bootstrap.ipxe`],
  [7, 'ipxe', 'PXEClient', `${BOOT}/pxe-bootstrap.ipxe`],
] as const

/** Reads a block of the page, with the addresses of the test's network in place of the documented ones. */
function readBlock(title: string): string {
  const page = readFileSync('docs/dhcp.md', 'utf8')
  const [, block = ''] = page.split(`\n## ${title}\n`)[1]?.split('```') ?? []
  return block
    .trimStart()
    .replaceAll('192.0.2.10', HOST_ADDRESS)
    .replaceAll('192.0.2.', '192.168.98.')
}

const wants = (block: string) => ({
  async answered(more: string, vendorOf: (wanted: string) => string) {
    await using host = await createDnsmasqHost()
    await using _ = await host.serve(`${more}${block}`)
    for (const [arch, who, vendor, file] of MACHINES) {
      const offer = await host.ask(arch, who)
      const shown = { file: '', vendor: '', ...(typeof offer === 'object' ? offer : {}) }
      assert.equal([shown.file, shown.vendor], [file, vendorOf(vendor)], `${arch} ${who}`)
    }
  },
})

test('dnsmasq as a proxy beside another DHCP server', async () => {
  const block = readBlock('dnsmasq, beside another DHCP server')
  assert.match(block, 'proxy')
  await wants(block).answered('', (vendor) => vendor)
})

test('several servers: the line for iPXE, in the block of a proxy and in that of a server', async () => {
  const line = readBlock('Several servers')
  const range = 'port=0\ndhcp-range=192.168.98.60,192.168.98.99,255.255.255.0,1h\n'
  for (const [title, more] of [
    ['dnsmasq', range],
    ['dnsmasq, beside another DHCP server', ''],
  ] as const) {
    const block = readBlock(title).replace(/^dhcp-boot=tag:ipxe,.*\n/m, line)
    await using host = await createDnsmasqHost()
    await using _ = await host.serve(`${more}${block}`)
    for (const arch of [0, 7]) {
      const offer = await host.ask(arch, 'ipxe')
      const shown = { file: '', next: '', ...(typeof offer === 'object' ? offer : {}) }
      assert.equal([shown.file, shown.next], ['autoexec.ipxe', HOST_ADDRESS], title)
    }
  }
})

test('dnsmasq that gives out the addresses', async () => {
  const range = 'port=0\ndhcp-range=192.168.98.60,192.168.98.99,255.255.255.0,1h\n'
  const block = readBlock('dnsmasq')
  // PXE firmware takes any answer, HTTP Boot only its own.
  await wants(block).answered(range, (vendor) => (vendor === 'HTTPClient' ? vendor : ''))
})

test.run()
