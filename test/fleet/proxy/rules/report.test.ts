/** The proxy's report as the server reads it, and who else answers in a network. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { describeRival, parseReport } from '#fleet/proxy/rules/report.ts'

const test = suite('the report of the proxy')
const AT = '2026-11-30T10:00:00.000Z'
const CLIENT = {
  mac: '52:54:00:12:34:56',
  arch: 7,
  isIpxe: false,
  address: null,
  askedAt: AT,
  file: null,
  loaded: null,
  failed: null,
}
const REPORT = {
  at: AT,
  state: 'answering',
  why: null,
  restarts: 0,
  networks: [],
  left: [],
  missing: [],
  tftpBy: null,
  clients: [CLIENT],
}
const read = (given: unknown, seconds = 1) =>
  parseReport(JSON.stringify(given), new Date(Date.parse(AT) + seconds * 1000))

test('a report counts while its proxy lives, and a broken row takes only itself away', () => {
  assert.equal(read(REPORT)?.clients, [CLIENT])
  assert.is(read(REPORT, 60), null)
  assert.is(read({ ...REPORT, state: 'happy' }), null)
  assert.is(read({ ...REPORT, why: 'x'.repeat(2000) }), null)
  assert.is(read('{"at"'), null)
  const crowd = [{ ...CLIENT, arch: 'x' }, CLIENT, { ...CLIENT, askedAt: 'never' }]
  assert.equal(read({ ...REPORT, clients: crowd })?.clients, [CLIENT])
  assert.equal(read({ ...REPORT, clients: 'all' })?.clients, [])
})

test('a second proxy, and a DHCP server that names a boot file', () => {
  const plain = { by: '192.0.2.1', assigns: true, file: null }
  assert.is(describeRival({ answers: null }), null)
  assert.is(describeRival({ answers: [plain] }), null)
  assert.is(
    describeRival({ answers: [plain, { by: '192.0.2.9', assigns: false, file: null }] }),
    'another PXE server answers, 192.0.2.9',
  )
  assert.is(
    describeRival({ answers: [{ ...plain, file: 'pxelinux.0' }] }),
    'the DHCP server 192.0.2.1 sends its own boot file, pxelinux.0',
  )
})

test.run()
