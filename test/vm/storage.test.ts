/** Disks that this host's kernel may not know, in a guest that has Debian's: what is refused, what is written. */
import { dirname } from 'node:path'
import { destr } from 'destr'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { z } from 'zod'
import { $ } from 'zx'
import { findImageObstacle, openDebianImage } from '#test/support/disk/debian-image.ts'
import type { GuestDisk } from '#test/support/vm/guest-disk.ts'
import { startGuest, type Guest } from '#test/support/vm/guest.ts'

const DISKS: readonly GuestDisk[] = [
  { name: 'lvm', bus: 'virtio', megabytes: 64, serial: 'LVM-PV' },
  { name: 'raid-a', bus: 'scsi', megabytes: 64, serial: 'RAID-A' },
  { name: 'raid-b', bus: 'scsi', megabytes: 64, serial: 'RAID-B' },
  { name: 'crypt', bus: 'virtio', megabytes: 64, serial: 'CRYPT' },
  { name: 'mounted', bus: 'sata', megabytes: 64, serial: 'MOUNTED' },
  { name: 'swap', bus: 'virtio', megabytes: 64, serial: 'SWAP' },
  { name: 'plain', bus: 'virtio', megabytes: 700 },
  { name: 'nvme', bus: 'nvme', megabytes: 700, serial: 'NVME-4K', sectorBytes: 4096 },
  { name: 'stick', bus: 'usb', megabytes: 256, serial: 'STICK', bytesPerSecond: 8_000_000 },
]

/** Puts disks to use; `disk SERIAL` is the path of one. */
const SET_UP = `
set -e
modprobe -a dm_mod dm_crypt raid1 loop
disk() { lsblk --nodeps --noheadings --paths -o NAME,SERIAL | awk -v s="$1" '$2 == s { print $1 }'; }
pvcreate $(disk LVM-PV)
vgcreate tank $(disk LVM-PV)
lvcreate -y -n data -L 32M tank
mdadm --create /dev/md0 --run --level=1 --raid-devices=2 --metadata=1.2 $(disk RAID-A) $(disk RAID-B)
printf secret | cryptsetup luksFormat -q --pbkdf pbkdf2 --pbkdf-force-iterations 1000 $(disk CRYPT) -
printf secret | cryptsetup open $(disk CRYPT) vault -
sgdisk -n 1:2048:0 $(disk MOUNTED)
udevadm settle
mkfs.ext4 -q $(disk MOUNTED)1
mkdir /run/there
mount $(disk MOUNTED)1 /run/there
mkswap $(disk SWAP)
swapon $(disk SWAP)
head -c 32M /dev/urandom >/tmp/small.img
head -c 160M /dev/urandom >/tmp/large.img
`

const USED: readonly (readonly [serial: string, refusal: RegExp])[] = [
  ['LVM-PV', /in use by \/dev\/mapper\/tank-data \(LVM\)/],
  ['RAID-A', /in use by \/dev\/md0 \(RAID 1\)/],
  ['CRYPT', /in use by \/dev\/mapper\/vault \(encrypted\)/],
  ['MOUNTED', /mounted partitions: \/run\/there/],
  ['SWAP', /is swap space in use/],
  ['SYSTEM', /holds the running system/],
]

const ListSchema = z.object({
  disks: z.array(
    z.object({ path: z.string(), serial: z.string().nullable(), tran: z.string().nullable() }),
  ),
})
const FlashSchema = z.object({ ok: z.boolean(), errors: z.array(z.string()) })

const FLASHER = 'node runtime/bin/flasher.mjs'

interface Context {
  guest: Guest
  rows: z.infer<typeof ListSchema>['disks']
}
const test = suite<Context>('storage')
const obstacle = findImageObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

if (obstacle === null) {
  test.before(async (context) => {
    const image = await openDebianImage()
    const images = dirname(await image.file('img.zst'))
    context.guest = await startGuest({ disks: DISKS, shares: { images } })
    await context.guest.require(SET_UP)
    const list = await context.guest.require(`${FLASHER} list disks --json`)
    context.rows = ListSchema.parse(destr(list)).disks
  })
  test.after(async ({ guest }) => {
    await guest[Symbol.asyncDispose]()
  })
}

/** The path in the guest of the one disk with this serial number. */
function findDisk({ rows }: Context, wanted: string | null): string {
  const paths = rows.filter(({ serial }) => serial === wanted).map(({ path }) => path)
  assert.is(paths.length, 1, `disks with the serial number ${wanted}: ${paths.join(' ')}`)
  return paths[0] ?? ''
}

run('disks are listed with serial number and transport where they have them', ({ rows }) => {
  const told = rows.map(({ serial, tran }) => `${serial} ${tran}`)
  assert.equal(told.toSorted(), [
    'CRYPT null',
    'LVM-PV null',
    'MOUNTED sata',
    'NVME-4K nvme',
    'RAID-A null',
    'RAID-B null',
    'STICK usb',
    'SWAP null',
    'SYSTEM null',
    'null null',
  ])
})

for (const [serial, refusal] of USED) {
  run(`a disk in use is refused: ${serial}`, async (context) => {
    const target = findDisk(context, serial)
    const flash = `${FLASHER} flash --image /tmp/small.img --target ${target} --dry-run --json`
    const { exitCode, stdout } = await context.guest.run(flash)
    const { ok, errors } = FlashSchema.parse(destr(stdout))
    assert.equal({ exitCode, ok }, { exitCode: 1, ok: false })
    assert.match(errors.join('\n'), refusal)
  })
}

run('Debian onto a disk without a serial number', async (context) => {
  const flash = `${FLASHER} flash --image /mnt/images/debian.img.zst --yes`
  await context.guest.require(`${flash} --target ${findDisk(context, null)}`)
  const { virtualBytes, file } = await openDebianImage()
  const written = context.guest.fileOf('plain')
  await $({ quiet: true })`cmp -n ${virtualBytes} ${await file('img')} ${written}`
})

run('a disk of 4096-byte sectors takes an image that is made for it', async (context) => {
  const target = findDisk(context, 'NVME-4K')
  await context.guest.require(`
    set -e
    truncate -s 96M /tmp/native.img
    loop=$(losetup --sector-size 4096 --find --show /tmp/native.img)
    sgdisk --new=1:256:16640 $loop
    mkfs.ext4 -q -b 4096 -E offset=1048576 $loop 16384
    losetup --detach $loop
    ${FLASHER} flash --image /tmp/native.img --target ${target} --yes
    cmp -n $((96 << 20)) /tmp/native.img ${target}
    udevadm settle
    mkdir /run/native
    mount ${target}p1 /run/native
    umount /run/native`)
})

run('and refuses one that is not, before anything is written', async (context) => {
  const target = findDisk(context, 'NVME-4K')
  const { exitCode, stderr } = await context.guest.run(`
    before=$(sha256sum <${target})
    ${FLASHER} flash --image /mnt/images/debian.img.zst --target ${target} --yes
    code=$?
    [ "$(sha256sum <${target})" = "$before" ] || exit 99
    exit $code`)
  assert.is(exitCode, 1)
  assert.match(stderr, /512-byte sectors.*4096-byte sectors/)
})

run('a disk that is pulled out ends the flash, and says so', async (context) => {
  const { guest } = context
  const target = findDisk(context, 'STICK')
  const flash = `${FLASHER} flash --image /tmp/large.img --target ${target} --yes`
  const flashing = guest.run(`
    ${flash} --progress ndjson >/tmp/events
    code=$?
    tail -n 1 /tmp/events
    exit $code`)
  await guest.require(`until grep -q '"bytes_written": *[1-9]' /tmp/events; do sleep 0.2; done`)
  await guest.pull('stick')
  const { exitCode, stdout, stderr } = await flashing
  assert.is(exitCode, 1)
  // The kernel says one or the other, by how far it is with taking the disk away.
  const reason = /(the disk is gone|write error) at byte/
  assert.match(stdout, /^\{"event": "failed"/)
  assert.match(stdout, reason)
  assert.match(stderr, reason)
})

test.run()
