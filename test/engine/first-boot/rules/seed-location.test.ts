/** Where a first-boot configuration goes, and the layouts that are refused before the first byte. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Partition } from '#engine/disk/rules/partition-tables.ts'
import { decideSeedLocation, planSeed } from '#engine/first-boot/rules/seed-location.ts'

const test = suite('the place of a first-boot configuration')
const MIB = 2 ** 20
const HELD = { headBytes: MIB, tailStart: 99 * MIB }
const LINUX = '0fc63daf-8483-4772-8e79-3d69d8477de4'
const OTHER = 'c12a7328-f81f-11d2-ba4b-00a0c93ec93b'
const SEED = { 'user-data': '', 'meta-data': '', 'network-config': null }
const BOTH = { cloudInit: SEED, ignition: '{}', reason: null }

const part = (
  number: number,
  from: number,
  to: number,
  { name = '', type = LINUX }: { readonly name?: string; readonly type?: string } = {},
): Partition => ({ number, name, uuid: '', type, offset: from * MIB, bytes: (to - from) * MIB })

const refusalOf = (
  partitions: readonly Partition[],
  firstBoot: Parameters<typeof decideSeedLocation>[2] = BOTH,
) => {
  const place = decideSeedLocation(partitions, HELD, firstBoot)
  return place.ok ? '' : place.refusal
}

test('cloud-init: the partitions that Linux is installed on', () => {
  const boot = part(1, 0.5, 1, { type: OTHER })
  const root = part(2, 1, 99)
  const place = decideSeedLocation([boot, root], HELD, BOTH)
  assert.equal(place, { ok: true, value: { kind: 'cloud-init', partitions: [root] } })
  assert.match(refusalOf([boot]), /no partition with a Linux root/)
})

test('what is held back is not touched, not even by a byte', () => {
  assert.match(refusalOf([part(1, 0.5, 50)]), /^partition 1 begins in the first MiB/)
  const late = { ...part(2, 1, 99, { name: 'root' }), bytes: 98 * MIB + 1 }
  assert.match(refusalOf([late]), /^partition 2 \(root\) reaches into the last MiB/)
  assert.match(refusalOf([part(1, 1, 50), part(2, 50, 100)]), /^partition 2 reaches/)
})

test('Ignition: Fedora CoreOS and Flatcar, by the names of their partitions', () => {
  const coreos = [
    part(2, 1, 2, { name: 'EFI-SYSTEM', type: OTHER }),
    part(3, 2, 9, { name: 'boot' }),
    part(4, 9, 50, { name: 'root' }),
  ]
  const flatcar = [
    part(3, 1, 2, { name: 'USR-A', type: OTHER }),
    part(6, 2, 9, { name: 'OEM' }),
    part(9, 9, 100, { name: 'ROOT' }),
  ]
  const seen = [coreos, flatcar].map((partitions) => {
    const place = decideSeedLocation(partitions, HELD, BOTH)
    return place.ok && place.value.kind === 'ignition'
      ? [place.value.partition.number, place.value.folder, place.value.file]
      : place
  })
  assert.equal(seen, [
    [3, 'ignition', 'config.ign'],
    [6, '', 'config.ign'],
  ])
  const onlyCloud = { cloudInit: SEED, ignition: null, reason: 'it installs packages' }
  assert.is(
    refusalOf(coreos, onlyCloud),
    'it cannot be rendered for Ignition: it installs packages',
  )
})

test('a text that the image does not read is refused', () => {
  const place = decideSeedLocation([part(1, 1, 50)], HELD, {
    cloudInit: null,
    ignition: '{}',
    reason: 'only for Ignition',
  })
  assert.equal(place, {
    ok: false,
    refusal: 'it cannot be rendered for cloud-init: only for Ignition',
  })
})

/** An MBR with partitions, each a type, a first sector and a number of sectors. */
function makeHead(...entries: readonly (readonly [number, number, number])[]): Buffer {
  const head = Buffer.alloc(MIB)
  head.writeUInt16LE(0xaa55, 510)
  for (const [index, [type, from, sectors]] of entries.entries()) {
    const at = 446 + index * 16
    head[at + 4] = type
    head.writeUInt32LE(from, at + 8)
    head.writeUInt32LE(sectors, at + 12)
  }
  return head
}

test('a CIDATA in what is held back to the end is refused while it can still be seen', () => {
  const plan = (head: Buffer) => planSeed(head, { ...HELD, sectorBytes: 512 }, BOTH)
  const refusal = (head: Buffer) => {
    const planned = plan(head)
    return planned.ok ? '' : planned.refusal
  }
  const root = [0x83, 2048, 20_480] as const
  const head = makeHead([0x0e, 64, 1024], root)
  assert.ok(plan(head).ok)
  head.write('CIDATA     FAT16   ', 64 * 512 + 43, 'latin1')
  assert.match(refusal(head), /a partition labelled CIDATA/)
  const late = makeHead(root, [0x0e, HELD.tailStart / 512 + 1, 64])
  assert.match(
    refusal(late),
    /^partition 2 begins in the last MiB of the disk, and cloud-init might/,
  )
})

test.run()
