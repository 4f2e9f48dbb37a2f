/** "boot_policy and the script returned by GET /pxe/{mac}", row by row. */
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { provesBoot } from '#server/earlier/machine-line.ts'
import { BASE, contactAt, createEarlierFixture, KEY } from '#test/support/server/earlier-machine.ts'

const test = suite('the earlier line: scripts')
const IMAGE = 'debian 13.img.zst'

/** The words of the kernel's command line. */
const argsOf = (script: string): readonly string[] =>
  (/^kernel (.*) \|\| goto again$/m.exec(script)?.[1] ?? '').split(' ')
const TO_DISK = 'sanboot --no-describe --drive 0x80 || exit'

const ROWS = [
  { policy: 'local', image: null, boots: 'disk' },
  { policy: 'local', image: IMAGE, boots: 'disk' },
  { policy: 'flash', image: null, boots: 'disk' },
  { policy: 'flash', image: IMAGE, boots: 'flash' },
  { policy: 'tui', image: null, boots: 'interactive' },
  { policy: 'tui', image: IMAGE, boots: 'interactive' },
] as const

for (const { policy, image, boots } of ROWS) {
  test(`${policy} ${image === null ? 'without' : 'with'} an image: ${boots}`, () => {
    const fixture = createEarlierFixture()
    fixture.put({ boot_policy: policy, image })
    const script = fixture.script()
    assert.match(script, /^#!ipxe\n/)
    const args = argsOf(script)
    assert.is(args.includes('flasher.mode=interactive'), boots === 'interactive')
    assert.is(script.includes('flasher.image_url='), boots === 'flash')
    assert.is(/^kernel /m.test(script), boots !== 'disk')
    // What is left when no file can be fetched is the disk, for each of them.
    assert.ok(script.includes(TO_DISK))
  })
}

test('flash: the four parameters of the table, and the files of the live system', () => {
  const fixture = createEarlierFixture()
  fixture.put({ boot_policy: 'flash', image: IMAGE })
  const script = fixture.script()
  const args = argsOf(script)
  for (const word of [
    `flasher.server=${BASE}`,
    'flasher.mac=52:54:00:12:34:56',
    `flasher.image_url=${BASE}/images/debian%2013.img.zst`,
    'flasher.provisioning=none',
    `flasher.squashfs=${BASE}/boot/flasher-live-x86_64.squashfs`,
    'boot=live',
    `fetch=${BASE}/boot/flasher-live-x86_64.squashfs`,
  ]) {
    assert.ok(args.includes(word), `${word} in ${args.join(' ')}`)
  }
  assert.ok(args[0]?.startsWith(`${BASE}/boot/flasher-live-x86_64.vmlinuz?`))
  assert.match(script, `initrd --name initrd ${BASE}/boot/flasher-live-x86_64.initrd`)
})

test('provisioning as the client gets it: cijoe-online is none there', () => {
  const rows = [
    ['none', 'none', false],
    ['cloud-init', 'cloud-init', true],
    ['cijoe', 'cijoe', true],
    ['cijoe-online', 'none', false],
  ] as const
  for (const [provisioning_mode, expected, hasToken] of rows) {
    const fixture = createEarlierFixture()
    fixture.put({ boot_policy: 'flash', image: IMAGE, provisioning_mode })
    const args = argsOf(fixture.script())
    assert.ok(args.includes(`flasher.provisioning=${expected}`), provisioning_mode)
    assert.is(
      args.some((word) => word.startsWith('flasher.token=')),
      hasToken,
      provisioning_mode,
    )
  }
})

test('a token holds for its cycle: until done, or until the machine gets something else to do', () => {
  const fixture = createEarlierFixture()
  const prove = (bearer: string | undefined) =>
    provesBoot(
      { bootKey: KEY },
      fixture.machine,
      contactAt(fixture.now(), { bearer: bearer ?? null }),
      false,
    )
  const boot = () =>
    argsOf(fixture.script())
      .find((word) => word.startsWith('flasher.token='))
      ?.slice('flasher.token='.length)
  fixture.put({ boot_policy: 'flash', image: IMAGE, provisioning_mode: 'cloud-init' })
  const first = boot()
  assert.ok(prove(first))
  assert.ok(prove(boot()), 'a retry of the same cycle')
  assert.ok(prove(first), 'the boot before, of the same cycle')
  assert.not(prove(undefined))
  assert.not(prove('nonsense'))
  fixture.put({
    boot_policy: 'flash',
    image: IMAGE,
    provisioning_mode: 'cloud-init',
    hostname: 'box-1',
  })
  assert.ok(prove(first), 'the same intent')
  fixture.signal({ kind: 'done' })
  assert.not(prove(first), 'done')
  const second = boot()
  assert.ok(prove(second))
  fixture.put({ boot_policy: 'flash', image: 'other.img', provisioning_mode: 'cloud-init' })
  assert.not(prove(second), 'another image')
})

test('whatever an image is called, it is one word of the script', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', minLength: 1, maxLength: 80 }), (image) => {
      const fixture = createEarlierFixture()
      try {
        fixture.put({ boot_policy: 'flash', image })
      } catch {
        return
      }
      const script = fixture.script()
      for (const line of script.split('\n')) assert.not.match(line, /[^\x20-\x7e]/)
      const args = argsOf(script).filter((word) => word.startsWith('flasher.image_url='))
      const { image: kept } = fixture.machine
      const [url = ''] = args.map((word) => word.slice('flasher.image_url='.length))
      if (kept !== null) assert.is(decodeURIComponent(url), `${BASE}/images/${kept}`)
    }),
  )
})

test('a plan names no disk, so it never flashes', () => {
  for (const { policy, image, boots } of ROWS) {
    const fixture = createEarlierFixture()
    fixture.put({ boot_policy: policy, image })
    const { plan } = fixture.line.decidePlan(fixture.machine, contactAt(fixture.now()))
    assert.is(plan['mode'], boots === 'disk' ? 'exit' : 'interactive')
  }
})

test.run()
