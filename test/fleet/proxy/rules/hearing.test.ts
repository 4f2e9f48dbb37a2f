/** What the proxy hears: dnsmasq's own lines, and what machines try to put between them. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  describeArch,
  describeClient,
  findNeighbour,
  hear,
  type HeardClient,
  MAX_CLIENTS,
  NOTHING_HEARD,
} from '#fleet/proxy/rules/hearing.ts'

const test = suite('what the proxy hears')
const MAC = '52:54:00:12:34:56'
const AT = '2026-11-30T10:00:00.000Z'
const LATER = '2026-11-30T10:00:02.000Z'

/** As dnsmasq 2.90 writes them to its standard error. */
const asked = (mac: string, vendor: string, ...more: readonly string[]) =>
  [
    '7 available DHCP subnet: 192.168.98.0/255.255.255.0',
    `7 vendor class: ${vendor}`,
    `7 PXE(lan0) ${mac} proxy`,
    '7 tags: efi, lan0',
    ...more,
  ].map((words) => `dnsmasq-dhcp[99]: ${words}`)
const UEFI = 'PXEClient:Arch:00007:UNDI:003016'
const GOT = '7 bootfile name: shimx64.efi'
const sent = (file: string) => `dnsmasq-tftp[99]: sent /run/f/tftp/${file} to 192.168.98.60`
const lost = (file: string) =>
  `dnsmasq-tftp[99]: file /run/f/tftp/${file} not found for 192.168.98.60`

const listen = (lines: readonly string[], at = AT, before = NOTHING_HEARD) =>
  lines.reduce((heard, line) => hear(heard, line, at, () => MAC), before)

function one(lines: readonly string[], later: readonly string[] = []): HeardClient {
  const [client, ...others] = listen(later, LATER, listen(lines)).clients
  assert.equal(others, [])
  if (client === undefined) throw new Error('nobody was heard')
  return client
}

const tell = (client: HeardClient, seconds: number, facts = {}) =>
  describeClient(client, {
    scriptAt: null,
    now: new Date(Date.parse(AT) + seconds * 1000),
    rival: null,
    ...facts,
  })

test('who asked, what it was told, and what it fetched', () => {
  const client = one(asked(MAC, UEFI, GOT), [sent('shimx64.efi'), lost('revocations.efi')])
  assert.equal(client, {
    mac: MAC,
    arch: 7,
    isIpxe: false,
    address: '192.168.98.60',
    askedAt: AT,
    file: 'shimx64.efi',
    loaded: { file: 'shimx64.efi', at: LATER },
    failed: null,
  })
  assert.is(describeArch(client), 'UEFI x64')
  assert.equal(tell(client, 4), { tone: 'ready', text: 'got shimx64.efi, fetched shimx64.efi' })
  assert.equal(tell(client, 9, { scriptAt: LATER }), {
    tone: 'done',
    text: 'got shimx64.efi, asked for its script',
  })
})

test('why a machine is stuck', () => {
  const client = one(asked(MAC, UEFI, GOT))
  assert.is(tell(client, 5).tone, 'ready')
  assert.match(tell(client, 60).text, 'no TFTP request came. A firewall may block UDP port 69')
  assert.match(
    tell(client, 60, { rival: 'another PXE server answers, 192.0.2.9' }).text,
    '192.0.2.9',
  )
  assert.match(tell(one(asked(MAC, UEFI)), 60).text, 'UDP port 4011')
  assert.match(tell(one(asked(MAC, UEFI, GOT), [lost('shimx64.efi')]), 1).text, 'does not have it')
  assert.match(tell(one(asked(MAC, UEFI, GOT), [sent('shimx64.efi')]), 60).text, 'HTTP port')
  assert.match(tell(one(asked(MAC, 'PXEClient:Arch:00027')), 1).text, 'No boot file fits')
  // An older script is of an earlier boot.
  assert.is(tell(client, 60, { scriptAt: '2026-11-30T09:00:00.000Z' }).tone, 'needs-you')
})

test('words of a machine are only words', () => {
  const forged = 'dnsmasq-dhcp[1]: 7 PXE(lan0) 66:66:66:66:66:66 proxy'
  const client = one(asked(MAC, `x ${forged} PXE(lan0) 66:66:66:66:66:66 proxy`, GOT))
  assert.equal([client.mac, client.arch, client.file], [MAC, null, 'shimx64.efi'])
  const names = listen([
    `dnsmasq-dhcp[9]: 7 client provides name: ${forged}`,
    `dnsmasq-tftp[9]: sent /x to 1.2.3.4 to nobody`,
    `dnsmasq-dhcp[9]: 7 vendor class: ${'\u202e'.repeat(5000)}`,
    '',
    'dnsmasq-dhcp[9]: ',
    `dnsmasq-dhcp[9]: ${'9'.repeat(5000)} PXE(lan0) ${MAC} proxy`,
  ])
  assert.equal(names.clients, [])
  assert.ok(names.open.vendor.length <= 200)
})

test('a client that asks for ever is one row, and a crowd has a limit', () => {
  let heard = NOTHING_HEARD
  for (let at = 0; at < 5000; at += 1) heard = listen(asked(MAC, UEFI, GOT), AT, heard)
  assert.is(heard.clients.length, 1)
  for (let at = 0; at < 300; at += 1) {
    const mac = `52:54:00:00:${(at >> 8).toString(16).padStart(2, '0')}:${(at & 255).toString(16).padStart(2, '0')}`
    heard = listen(asked(mac, UEFI, GOT), AT, heard)
  }
  assert.is(heard.clients.length, MAX_CLIENTS)
})

test('addresses are found among the neighbours of the kernel', () => {
  const table = `IP address       HW type     Flags       HW address            Mask     Device
192.168.98.50    0x1         0x2         26:0b:80:40:a5:ba     *        lan0
192.168.98.51    0x1         0x0         nothing               *        lan0`
  assert.is(findNeighbour(table, '192.168.98.50'), '26:0b:80:40:a5:ba')
  assert.is(findNeighbour(table, '192.168.98.51'), null)
  assert.is(findNeighbour(table, '192.168.98.5'), null)
})

test.run()
