/** Provisioning into a logical volume, in a guest whose kernel has device-mapper. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { SEED_FOLDER } from '#engine/flash/rules/provisioning.ts'
import { findImageObstacle } from '#test/support/disk/debian-image.ts'
import type { GuestDisk } from '#test/support/vm/guest-disk.ts'
import { startGuest, type Guest } from '#test/support/vm/guest.ts'

const DISKS: readonly GuestDisk[] = [
  { name: 'one', bus: 'scsi', megabytes: 96, serial: 'ONE' },
  { name: 'two', bus: 'scsi', megabytes: 96, serial: 'TWO' },
]

/** An image with its root in a logical volume, as installers make them; switched off again. */
const SET_UP = `
set -e
modprobe -a dm_mod loop
truncate -s 64M /tmp/lvm.img
sgdisk --new=1:2048:0 --typecode=1:8e00 /tmp/lvm.img
loop=$(losetup --find --show --offset $((1 << 20)) /tmp/lvm.img)
pvcreate $loop
vgcreate inside $loop
lvcreate -y -n swap -L 8M inside
lvcreate -y -n root -l 100%FREE inside
mkfs.ext4 -q /dev/inside/root
mkdir /run/root
mount /dev/inside/root /run/root
mkdir -p /run/root/etc/cloud
umount /run/root
vgchange -an inside
losetup --detach $loop
printf '#cloud-config\\nhostname: inside\\n' >/tmp/user-data
`

const DISK = `disk() { lsblk --nodeps --noheadings --paths -o NAME,SERIAL | awk -v s="$1" '$2 == s { print $1 }'; }`
const FLASH =
  'node runtime/bin/flasher.mjs flash --image /tmp/lvm.img --yes --provision cloud-init --user-data /tmp/user-data'

interface Context {
  guest: Guest
}
const test = suite<Context>('provisioning with LVM')
const obstacle = findImageObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

if (obstacle === null) {
  test.before(async (context) => {
    context.guest = await startGuest({ disks: DISKS })
    await context.guest.require(SET_UP)
  })
  test.after(async ({ guest }) => {
    await guest[Symbol.asyncDispose]()
  })
}

run('the seed goes into the root volume, and the group is off again', async ({ guest }) => {
  const seed = await guest.require(`
    set -e
    ${DISK}
    ${FLASH} --target $(disk ONE) >&2
    [ ! -e /dev/mapper/inside-root ] || { echo still active >&2; exit 1; }
    vgchange -ay inside >&2
    mount -o ro /dev/inside/root /run/root
    cat /run/root/${SEED_FOLDER}/user-data
    umount /run/root
    vgchange -an inside >&2`)
  assert.is(seed, '#cloud-config\nhostname: inside\n')
})

run(
  'a group that is also one of this machine stays untouched, and the disk without its seed does not boot',
  async ({ guest }) => {
    const { exitCode, stderr } = await guest.run(`
    ${DISK}
    ${FLASH} --target $(disk TWO)`)
    assert.is(exitCode, 1)
    assert.match(stderr, /its volume group inside is also one of this machine/)
    await guest.require(`
    set -e
    [ ! -e /dev/mapper/inside-root ]
    ${DISK}
    cmp -n $((1 << 20)) /dev/zero $(disk TWO)`)
  },
)

test.run()
