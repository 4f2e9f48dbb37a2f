/** No proof where nothing booted: what looks like a new system and is none, each by its name. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseFirstBoot } from '#engine/first-boot/rules/seed.ts'
import type { HostKeys } from '#fleet/proof/rules/proof.ts'
import { diskOf, entryOf, MAC, macOf, REF } from '#test/support/server/machine-fixture.ts'
import { bodyOf, runIdOf } from '#test/support/server/runs.ts'
import { asJson, createTestServer, readJson } from '#test/support/server/server.ts'
import { waitUntil } from '#test/support/waiting.ts'

const test = suite('false witnesses')

const FLASH = { boot_mode: 'flasher-flash-once', bty_image_ref: REF, target_disk_serial: 'S1' }
const OTHER = macOf('52:54:00:00:00:99')
const IP = '192.0.2.10'
const OTHER_IP = '192.0.2.11'
const LIMIT_S = 1800

const NONE: HostKeys = []
const UNREADABLE: HostKeys = null

/** A machine whose old system ran for an hour when it was ordered to flash, unless it was off. */
async function open({
  wasOff = false,
  old = NONE,
  live = NONE,
}: { wasOff?: boolean; old?: HostKeys; live?: HostKeys } = {}) {
  const clock = { ms: Date.parse('2026-11-26T08:00:00.000Z') }
  /** What is seen of the machine from outside now. */
  const outside = { answers: !wasOff, keys: old }
  const server = await createTestServer({
    catalog: [entryOf(REF)],
    now: () => new Date(clock.ms),
    elapsed: () => clock.ms,
    env: {
      FLASHER_PROOF_ENABLED: 'true',
      FLASHER_PROOF_LIMIT: String(LIMIT_S),
      FLASHER_PROOF_PORT: '22',
    },
    witnesses: {
      findAnswers: async (macs) => new Map(macs.map((mac) => [mac, outside.answers])),
      readKeys: async () => outside.keys,
    },
  })
  const ask = await server.operator()
  const pass = (seconds: number) => void (clock.ms += seconds * 1000)
  let runs = 0
  const post = (phase: 'started' | 'done' | 'failed', mac: string = MAC, mode?: 'capture') =>
    server.request(
      `/pxe/${mac}/progress`,
      asJson({ ...bodyOf({ run: runIdOf(runs), phase }), ...(mode ? { mode } : {}) }),
    )
  async function fetchCall(mac: string = MAC): Promise<string> {
    const plan = await readJson(server.request(`/pxe/${mac}/plan?features=first-boot`))
    const body = asJson({ token: plan.first_boot.token })
    const answer = await server.request(`/pxe/${mac}/first-boot`, body)
    const parsed = parseFirstBoot(await answer.json())
    assert.ok(parsed.ok)
    const text = parsed.value.cloudInit?.['vendor-data'] ?? ''
    return new URL(/"url": "([^"]+)"/.exec(text)?.[1] ?? '').pathname
  }
  const read = async () => {
    const run = await readJson(ask(`/machines/${MAC}/runs/${runIdOf(runs)}`))
    return run.proof?.state ?? null
  }
  const site = {
    server,
    ask,
    outside,
    pass,
    contact: (mac: string = MAC, ip: string = IP) => server.request(`/pxe/${mac}`, { ip }),
    fetchCall,
    call: (path: string, init: Parameters<typeof server.request>[1] = {}) =>
      server.request(path, { method: 'POST', ip: IP, ...init }),
    look: () => server.proofs.look(),
    /** The next look finds this; the live system is gone by then. */
    async see(keys: HostKeys) {
      outside.answers = false
      await server.proofs.look()
      pass(30)
      Object.assign(outside, { answers: true, keys })
      await server.proofs.look()
    },
    /** The live system boots, and the flash begins. */
    async begin(mode?: 'capture') {
      runs += 1
      await site.contact()
      Object.assign(outside, { answers: true, keys: live })
      await post('started', MAC, mode)
      pass(60)
    },
    async end(phase: 'done' | 'failed' = 'done') {
      await post(phase)
      await server.request(`/pxe/${MAC}/status?run=${runIdOf(runs)}`, asJson({ status: phase }))
    },
    order: async () => {
      await ask(`/machines/${MAC}/flash`, asJson({}))
      server.proofs.order(MAC, `order ${clock.ms}`)
    },
    /** What became of the newest run in the end. */
    async word(): Promise<string | null> {
      pass(LIMIT_S + 1)
      await server.proofs.sweep()
      // Whoever asks for a boot script does not wait for what follows from it.
      await waitUntil(
        async () => (await read()) !== 'watching',
        () => 'the wait has ended',
      )
      return await read()
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
  await ask('/first-boot/web', asJson({ hostname: 'web', commands: ['true'] }, 'PUT'))
  for (const mac of [MAC, OTHER]) {
    await ask(`/machines/${mac}`, asJson({ boot_mode: 'ipxe-exit' }, 'PUT'))
    await site.contact(mac, mac === MAC ? IP : OTHER_IP)
    await server.request(`/pxe/${mac}/inventory`, asJson({ disks: [diskOf('S1')] }))
  }
  pass(3600)
  await ask(`/machines/${MAC}`, asJson({ ...FLASH, first_boot: 'web' }, 'PUT'))
  await site.order()
  return site
}

type Site = Awaited<ReturnType<typeof open>>
interface Row {
  readonly before?: Parameters<typeof open>[0]
  readonly ends?: string | null
  play(site: Site): Promise<unknown>
}

/** Flashed, with the address that its system would call. */
async function flash(site: Site): Promise<string> {
  await site.begin()
  const address = await site.fetchCall()
  await site.end()
  return address
}

const FALSE_WITNESSES: Readonly<Record<string, Row>> = {
  'the live system, which writes the address, calls it': {
    async play(site) {
      await site.begin()
      await site.call(await site.fetchCall())
      await site.end()
    },
  },
  'the live system still answers on the network': {
    play: async (site) => [await flash(site), await site.look(), await site.look()],
  },
  'firmware asks for its boot script': {
    play: async (site) => [await flash(site), site.pass(40), await site.contact()],
  },
  'firmware answers on the network while it boots': {
    async play(site) {
      await flash(site)
      site.pass(40)
      await site.contact()
      await site.look()
    },
  },
  'a boot loader asks three times in one boot': {
    async play(site) {
      await flash(site)
      for (const seconds of [40, 1, 1]) {
        site.pass(seconds)
        await site.contact()
      }
    },
  },
  'a machine that boots from the network again and again': {
    ends: 'failed',
    async play(site) {
      await flash(site)
      for (const seconds of [40, 40, 40]) {
        site.pass(seconds)
        await site.contact()
      }
    },
  },
  'the system of a flash that failed calls its address': {
    ends: null,
    async play(site) {
      await site.begin()
      const address = await site.fetchCall()
      await site.end('failed')
      await site.call(address)
    },
  },
  'the old system calls the address of the flash before': {
    async play(site) {
      const before = await flash(site)
      site.pass(60)
      await site.order()
      await flash(site)
      await site.call(before)
    },
  },
  'a guessed address': {
    async play(site) {
      await site.call((await flash(site)).replace(/booted\/.*/, 'booted/guess'))
    },
  },
  'an address whose signature was changed': {
    async play(site) {
      const address = await flash(site)
      await site.call(`${address.slice(0, -1)}${address.endsWith('A') ? 'B' : 'A'}`)
    },
  },
  'an address with the signature of another time': {
    async play(site) {
      await site.call((await flash(site)).replace(/booted\/[0-9a-z]+\./, 'booted/0.'))
    },
  },
  'an address with the MAC of another machine': {
    async play(site) {
      await site.call((await flash(site)).replace(MAC, OTHER))
    },
  },
  'a copied address that another known machine calls': {
    async play(site) {
      const address = await flash(site)
      site.pass(30)
      await site.contact(OTHER, OTHER_IP)
      await site.call(address, { ip: OTHER_IP })
    },
  },
  'a mail filter that opens the address': {
    play: async (site) => await site.call(await flash(site), { method: 'GET' }),
  },
  'a call with more than it may have': {
    play: async (site) => await site.call(await flash(site), { body: 'x'.repeat(5000) }),
  },
  'a call after the limit': {
    async play(site) {
      const address = await flash(site)
      site.pass(LIMIT_S + 1)
      await site.server.proofs.sweep()
      await site.call(address)
    },
  },
  'a call after the next run has begun': {
    ends: null,
    async play(site) {
      const address = await flash(site)
      await site.begin('capture')
      await site.call(address)
    },
  },
  'a BMC that shares the port answers at the address': {
    before: { old: NONE },
    async play(site) {
      await flash(site)
      site.outside.keys = ['bmc']
      site.outside.answers = false
      await site.look()
    },
  },
  'the old system is back, with its host key': {
    before: { old: ['old'] },
    ends: 'seen',
    play: async (site) => [await flash(site), await site.see(['old', 'newer'])],
  },
  'a live system that was booted again, with a host key of its own': {
    before: { old: ['old'] },
    ends: 'not-seen',
    async play(site) {
      await flash(site)
      await site.ask(
        `/machines/${MAC}`,
        asJson({ ...FLASH, boot_mode: 'flasher-tui', first_boot: 'web' }, 'PUT'),
      )
      site.pass(40)
      await site.contact()
      site.outside.keys = ['of this boot']
      await site.look()
    },
  },
  'the live system still has the host key that it had': {
    before: { live: ['live'] },
    ends: 'seen',
    play: async (site) => [await flash(site), await site.see(['live'])],
  },
  'a port that was closed before, and has no SSH now': {
    ends: 'seen',
    play: async (site) => [await flash(site), await site.see(NONE)],
  },
  'host keys of an old system that could not be read': {
    before: { old: UNREADABLE },
    ends: 'seen',
    play: async (site) => [await flash(site), await site.see(['new'])],
  },
  'an unknown old system of a machine that was off': {
    before: { wasOff: true },
    ends: 'seen',
    play: async (site) => [await flash(site), await site.see(['never seen'])],
  },
  'a host key that could not be read': {
    before: { old: ['old'] },
    ends: 'seen',
    play: async (site) => [await flash(site), await site.see(UNREADABLE)],
  },
}

for (const [name, { before, ends = 'not-seen', play }] of Object.entries(FALSE_WITNESSES)) {
  test(name, async () => {
    await using site = await open(before)
    await play(site)
    assert.is(await site.word(), ends)
  })
}

test('at least 20 of them, and none of the tests would miss a true one', async () => {
  assert.ok(Object.keys(FALSE_WITNESSES).length >= 20)
  await using called = await open()
  await called.call(await flash(called))
  assert.is(await called.word(), 'booted')
  await using second = await open()
  const lshw = { id: 'core', children: [{ class: 'network', serial: OTHER }] }
  const disks = [diskOf('S1')]
  await second.server.request(`/pxe/${MAC}/inventory`, asJson({ disks, lshw }))
  const address = await flash(second)
  second.pass(30)
  await second.contact(OTHER, OTHER_IP)
  await second.call(address, { ip: OTHER_IP })
  assert.is(await second.word(), 'booted', 'by another card of the same machine')
  for (const old of [['old'], NONE]) {
    await using site = await open({ old })
    await flash(site)
    await site.see(['new'])
    assert.is(await site.word(), 'booted')
  }
})

test.run()
