/** UEFI with Secure Boot, Debian's shim and GRUB by TFTP, the server's script: the live system's kernel; and a refusal. */
import { copyFile, mkdir, mkdtempDisposable, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { GRUB_CONFIG, GRUB_FILES, SHIM_FILES } from '#appliance/assets.ts'
import { renderGrubConfig } from '#fleet/boot/rules/grub-script.ts'
import { MAC } from '#test/support/server/machine-fixture.ts'
import { findBuildObstacle, openSecureBoot } from '#test/support/vm/built-images.ts'
import { HOST_SEEN_BY_GUESTS } from '#test/support/vm/ipxe.ts'
import { startQemu } from '#test/support/vm/qemu.ts'
import { LOCKED_DOWN, SECURE_FIRMWARE } from '#test/support/vm/secure-firmware.ts'
import { INITRD, KERNEL, startStation, type Station } from '#test/support/vm/station.ts'

const test = suite('Secure Boot')
const obstacle = findBuildObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

/** Seconds, ten times what a free machine needs. */
const PATIENCE = 300

const REFUSED = /Verification failed: .*Security Violation/

/** The folder of a TFTP daemon, as the documentation says. */
async function fillTftp(folder: string, { port }: Station): Promise<void> {
  const { shim, grub } = await openSecureBoot()
  await mkdir(join(folder, 'grub'))
  await copyFile(shim, join(folder, SHIM_FILES.x86_64))
  await copyFile(grub, join(folder, GRUB_FILES.x86_64))
  const config = renderGrubConfig(`${HOST_SEEN_BY_GUESTS}:${port}`)
  await writeFile(join(folder, GRUB_CONFIG), config)
}

const start = (tftp: string) =>
  startQemu({
    args: [
      ...SECURE_FIRMWARE,
      '-machine',
      'graphics=off',
      '-device',
      'virtio-rng-pci',
      '-netdev',
      `user,id=net,tftp=${tftp},bootfile=${SHIM_FILES.x86_64}`,
      '-device',
      `virtio-net-pci,netdev=net,mac=${MAC},romfile=,bootindex=1`,
    ],
  })

run("an unknown machine starts the live system's kernel, locked down", async () => {
  await using station = await startStation()
  await using tftp = await mkdtempDisposable(join(tmpdir(), 'flasher-tftp-'))
  await fillTftp(tftp.path, station)
  await using machine = await start(tftp.path)
  await machine.waitFor(/starts the live system \(disks-wanted\)/, PATIENCE)
  await machine.waitFor(LOCKED_DOWN, PATIENCE)
  const server = `${HOST_SEEN_BY_GUESTS}:${station.port}`
  assert.equal(station.requests, [
    `GET /pxe/${MAC}.grub?buildarch=x86_64&platform=efi&server=${server}&offered=`,
    `GET /boot/${KERNEL}?mac=${MAC}`,
    `GET /boot/${INITRD}?mac=${MAC}`,
  ])
  const known = await station.machines.find(MAC)
  assert.equal(
    [known?.arch, known?.boot_mode, known?.cycle.offers],
    ['x86_64', 'flasher-inventory', 1],
  )
})

run('a GRUB with one byte changed is refused, and nobody asks the server', async () => {
  await using station = await startStation()
  await using tftp = await mkdtempDisposable(join(tmpdir(), 'flasher-tftp-'))
  await fillTftp(tftp.path, station)
  const grub = join(tftp.path, GRUB_FILES.x86_64)
  const bytes = await readFile(grub)
  bytes.writeUInt8(bytes.readUInt8(bytes.length >> 1) ^ 1, bytes.length >> 1)
  await writeFile(grub, bytes)
  const said: string[] = []
  // Firmware drops parts of a line that the host takes too slowly: then nobody can read why, and it starts anew.
  while (said.length < 3 && !REFUSED.test(said.at(-1) ?? '')) {
    await using machine = await start(tftp.path)
    said.push(await machine.waitFor(/ERROR {9}[^]* OK /, PATIENCE))
  }
  assert.match(said.at(-1) ?? '', REFUSED)
  assert.equal(station.requests, [])
})

test.run()
