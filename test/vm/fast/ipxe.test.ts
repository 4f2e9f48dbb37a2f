/** A real iPXE, in BIOS and UEFI machines, boots from the real server: each mode, and the path it takes. */
import { unlink } from 'node:fs/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { findImageObstacle } from '#test/support/disk/debian-image.ts'
import { DISK_SAYS, HOST_SEEN_BY_GUESTS, makeTalkingDisk } from '#test/support/vm/ipxe.ts'
import { MAC, REF } from '#test/support/server/machine-fixture.ts'
import { INITRD, KERNEL, startStation, type Station } from '#test/support/vm/station.ts'

const test = suite('iPXE')

const obstacle = findImageObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

/** Seconds, ten times what a free machine needs. */
const PATIENCE = 300
const HYPHENS = '52-54-00-12-34-56'

const SCRIPTS = ['GET /pxe-bootstrap.ipxe', `GET /pxe/${HYPHENS}`]
const LIVE = [`GET /boot/${KERNEL}?mac=${MAC}`, `GET /boot/${INITRD}?mac=${MAC}`]

const FLASH = { bty_image_ref: REF, target_disk_serial: 'S1' }
const LIVE_MODES = {
  'flasher-flash-once': 'flash',
  'flasher-flash-always': 'flash',
  'flasher-inventory': 'disks-wanted',
  'flasher-tui': 'wizard',
} as const

run('BIOS: ipxe-exit boots the disk by sanboot', async () => {
  await using station = await startStation()
  await station.put({})
  const disk = await makeTalkingDisk(station.dir)
  await using machine = await station.boot({ firmware: 'bios', disk })
  await machine.waitFor(/boots its own disk \(ipxe-exit\)/, PATIENCE)
  await machine.waitFor(/Booting from SAN device 0x80/, PATIENCE)
  await machine.waitFor(new RegExp(DISK_SAYS), PATIENCE)
  assert.equal(station.requests, SCRIPTS)
})

run('BIOS: without such a drive it goes back to the firmware', async () => {
  await using station = await startStation()
  await station.put({ sanboot_drive: '0x83' })
  const disk = await makeTalkingDisk(station.dir)
  await using machine = await station.boot({ firmware: 'bios', disk })
  await machine.waitFor(/Booting from SAN device 0x83/, PATIENCE)
  await machine.waitFor(/Booting from Hard Disk/, PATIENCE)
  await machine.waitFor(new RegExp(DISK_SAYS), PATIENCE)
})

run('what stands behind a semicolon in a comment is no command', async () => {
  await using station = await startStation()
  await station.put({ ...FLASH, boot_mode: 'flasher-flash-once' })
  await station.machines.update(MAC, (before) =>
    before === null ? null : { ...before, cycle: { ...before.cycle, offers: 99 } },
  )
  const disk = await makeTalkingDisk(station.dir)
  await using machine = await station.boot({ firmware: 'bios', disk })
  const said = await machine.waitFor(/boots its own disk \(loop-to-disk\)/, PATIENCE)
  assert.not.match(said, /command not found/)
  await machine.waitFor(new RegExp(DISK_SAYS), PATIENCE)
})

run('UEFI: ipxe-exit goes back to the boot order, with no sanboot', async () => {
  await using station = await startStation()
  await station.put({})
  await using machine = await station.boot({
    firmware: 'uefi',
    disk: await makeTalkingDisk(station.dir),
  })
  await machine.waitFor(/boots its own disk \(ipxe-exit\)/, PATIENCE)
  const back = await machine.waitFor(
    /BdsDxe: (loading|starting|failed to load) Boot\d+ .*\n/,
    PATIENCE,
  )
  assert.not.match(back, /SAN/)
  assert.equal(station.requests, SCRIPTS)
})

for (const [boot_mode, rule] of Object.entries(LIVE_MODES)) {
  run(`BIOS: ${boot_mode} boots the live system with its arguments`, async () => {
    await using station = await startStation()
    await station.put({ ...FLASH, boot_mode })
    await using machine = await station.boot({ firmware: 'bios' })
    await machine.waitFor(new RegExp(`starts the live system \\(${rule}\\)`), PATIENCE)
    checkCommandLine(await machine.waitFor(/Kernel command line: .*\n/, PATIENCE), station)
    assert.equal(station.requests, [...SCRIPTS, ...LIVE])
    const known = await station.machines.find(MAC)
    assert.is(known?.saw_flasher_boot, boot_mode !== 'flasher-tui')
  })
}

run('UEFI: flasher-flash-once boots the live system with its arguments', async () => {
  await using station = await startStation()
  await station.put({ ...FLASH, boot_mode: 'flasher-flash-once' })
  await using machine = await station.boot({ firmware: 'uefi' })
  await machine.waitFor(/starts the live system \(flash\)/, PATIENCE)
  checkCommandLine(await machine.waitFor(/Kernel command line: .*\n/, PATIENCE), station)
  assert.equal(station.requests, [...SCRIPTS, ...LIVE])
})

/** The kernel says it twice: a busy host's serial port loses a character now and then. */
function checkCommandLine(said: string, { port }: Station) {
  const line = said.slice(said.indexOf('Command line: '))
  const base = `http://${HOST_SEEN_BY_GUESTS}:${port}`
  for (const arg of [
    'initrd=initrd',
    'console=tty0 console=ttyS0,115200',
    `flasher.server=${base}`,
    `flasher.mac=${MAC}`,
    `flasher.squashfs=${base}/boot/flasher-netboot-pc-x86_64-v1.2.3.squashfs`,
    `flasher.sha256=${'d'.repeat(64)}`,
  ]) {
    assert.ok(line.includes(` ${arg}`), `${arg} in ${line}`)
  }
}

run('a new machine is discovered', async () => {
  await using station = await startStation()
  await using machine = await station.boot({ firmware: 'bios' })
  await machine.waitFor(/starts the live system \(disks-wanted\)/, PATIENCE)
  const known = await station.machines.find(MAC)
  assert.is(known?.boot_mode, 'flasher-inventory')
  assert.ok(known?.discovered_at)
})

run('files that are away for a moment are asked for again, after 1 second, then 2', async () => {
  await using station = await startStation()
  await station.put({ ...FLASH, boot_mode: 'flasher-flash-once' })
  await unlink(station.kernelPath)
  await using machine = await station.boot({ firmware: 'bios' })
  await machine.waitFor(/next try in 1 s\n/, PATIENCE)
  await machine.waitFor(/next try in 2 s\n/, PATIENCE)
  await station.restoreKernel()
  await machine.waitFor(/Command line: /, PATIENCE)
})

run('autoexec.ipxe brings the card in use to its script, which tells what it is', async () => {
  await using station = await startStation()
  await using machine = await station.boot({ firmware: 'bios', path: '/autoexec.ipxe' })
  await machine.waitFor(/starts the live system \(disks-wanted\)/, PATIENCE)
  assert.equal(station.requests.slice(0, 3), [
    'GET /autoexec.ipxe',
    `GET /pxe-bootstrap.ipxe?mac=${HYPHENS}`,
    `GET /pxe/${HYPHENS}?buildarch=i386&platform=pcbios&hostname=`,
  ])
  const known = await station.machines.find(MAC)
  assert.is(known?.arch, 'i386')
})

test.run()
