/** A real iPXE goes on at the next server: from one that is silent at the script, and from one without the live system's files. */
import { unlink } from 'node:fs/promises'
import { createServer } from 'node:http'
import { once } from 'node:events'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { renderAutoexec } from '#fleet/boot/rules/boot-script.ts'
import { findImageObstacle } from '#test/support/disk/debian-image.ts'
import { HOST_SEEN_BY_GUESTS } from '#test/support/vm/ipxe.ts'
import { MAC, REF } from '#test/support/server/machine-fixture.ts'
import { INITRD, KERNEL, startStation } from '#test/support/vm/station.ts'

const test = suite('iPXE and several servers')

const obstacle = findImageObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

/** Seconds, ten times what a free machine needs. */
const PATIENCE = 180
const FLASH = { boot_mode: 'flasher-flash-once', bty_image_ref: REF, target_disk_serial: 'S1' }
const SCRIPT = `GET /pxe/${MAC.replaceAll(':', '-')}`

const seen = (port: number) => `http://${HOST_SEEN_BY_GUESTS}:${port}`

/** Sends `autoexec.ipxe`, then takes every request and answers none, like a process that was stopped. */
async function startSilent(other: string) {
  const requests: string[] = []
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`)
    if (request.url !== '/autoexec.ipxe') return
    response.end(renderAutoexec(seen(request.socket.localPort ?? 0), [other]))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  return {
    requests,
    port: typeof address === 'object' && address !== null ? address.port : 0,
    [Symbol.dispose]() {
      server.close()
      server.closeAllConnections()
    },
  }
}

run(
  'BIOS: silent at the script, no kernel at the second: the third boots the machine',
  async () => {
    await using third = await startStation()
    await using second = await startStation({ FLASHER_PXE_SERVERS: seen(third.port) })
    using first = await startSilent(seen(second.port))
    for (const station of [second, third]) await station.put(FLASH)
    await unlink(second.kernelPath)

    await using machine = await second.boot({
      firmware: 'bios',
      port: first.port,
      path: '/autoexec.ipxe',
    })
    const said = await machine.waitFor(/Kernel command line: .*\n/, PATIENCE)
    assert.match(
      said.slice(said.lastIndexOf('Command line: ')),
      ` flasher.server=${seen(third.port)} `,
    )
    assert.is(first.requests.length, 2)
    assert.match(first.requests[1] ?? '', SCRIPT)
    assert.match(second.requests[0] ?? '', SCRIPT)
    assert.equal(second.requests.slice(1), [`GET /boot/${KERNEL}?mac=${MAC}`])
    assert.equal(third.requests, [
      SCRIPT,
      `GET /boot/${KERNEL}?mac=${MAC}`,
      `GET /boot/${INITRD}?mac=${MAC}`,
    ])
  },
)

test.run()
