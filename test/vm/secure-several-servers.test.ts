/** Debian's signed GRUB, two servers: a host that is gone and one that is silent are left after GRUB's own time, for the next that answers. */
import { mkdtempDisposable, copyFile, mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { once } from 'node:events'
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
import { SECURE_FIRMWARE } from '#test/support/vm/secure-firmware.ts'
import { startStation } from '#test/support/vm/station.ts'

const test = suite('GRUB and several servers')
const obstacle = findBuildObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

/** Seconds, ten times what a free machine needs beside GRUB's own time-outs. */
const PATIENCE = 400
/** Nobody has this address in QEMU's network. */
const GONE = '10.0.2.77:8080'

const seconds = (from: number, to: number) => Math.round((to - from) / 1000)

/** Takes connections and says nothing. `asked` is the time of each, in milliseconds. */
async function startSilent() {
  const asked: number[] = []
  const server = createServer((socket) => {
    socket.once('data', () => asked.push(performance.now()))
    socket.on('error', () => undefined)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return { asked, port, [Symbol.dispose]: () => void server.close() }
}

run('gone, then silent: the third boots the machine', async () => {
  using silent = await startSilent()
  await using station = await startStation()
  const { shim, grub } = await openSecureBoot()
  await using tftp = await mkdtempDisposable(join(tmpdir(), 'flasher-tftp-'))
  await mkdir(join(tftp.path, 'grub'))
  await copyFile(shim, join(tftp.path, SHIM_FILES.x86_64))
  await copyFile(grub, join(tftp.path, GRUB_FILES.x86_64))
  const others = [silent.port, station.port].map((port) => `http://${HOST_SEEN_BY_GUESTS}:${port}`)
  await writeFile(join(tftp.path, GRUB_CONFIG), renderGrubConfig(GONE, others))
  const network = `user,id=net,tftp=${tftp.path},bootfile=${SHIM_FILES.x86_64}`
  const card = `virtio-net-pci,netdev=net,mac=${MAC},romfile=,bootindex=1`
  const began = performance.now()
  await using machine = await startQemu({
    args: [
      ...SECURE_FIRMWARE,
      '-machine',
      'graphics=off',
      '-device',
      'virtio-rng-pci',
      '-netdev',
      network,
      '-device',
      card,
    ],
  })
  await machine.waitFor(/starts the live system \(disks-wanted\)/, PATIENCE)
  const [first = Number.NaN] = silent.asked
  console.log(
    `GRUB: ${seconds(began, first)} s to the silent server, ${seconds(first, performance.now())} s to the next`,
  )
  assert.match(station.requests[0] ?? '', `GET /pxe/${MAC}.grub?`)
})

test.run()
