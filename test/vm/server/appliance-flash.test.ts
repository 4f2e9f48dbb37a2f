/** The server appliance alone, beside a DHCP server, makes a Debian out of a machine that boots from the network. */
import { openAsBlob } from 'node:fs'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { createNamespace } from '#test/support/http/namespace.ts'
import { startDhcp } from '#test/support/net/lab-dhcp.ts'
import { openDebianImage } from '#test/support/disk/debian-image.ts'
import { makeSecureDisk } from '#test/support/disk/secure-disk.ts'
import { login as openSession } from '#test/support/server/flasher-web.ts'
import { createAsk, startMachine } from '#test/support/server/lab.ts'
import { findBuildObstacle, openSecureBoot, openTrio } from '#test/support/vm/built-images.ts'
import {
  discover,
  flash,
  openMachine,
  PATIENCE,
  type MachineLab,
} from '#test/support/vm/pxe-flash.ts'
import {
  APPLIANCE_MAC,
  login,
  readPassword,
  runAsRoot,
  startAppliance,
  waitForHealth,
  waitForLogin,
  writeServerDisk,
} from '#test/support/vm/server-appliance.ts'

const test = suite('the server appliance flashes')
const obstacle = findBuildObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

const ADDRESS = '192.168.99.20'
const IMAGE = 'secure-debian.img.zst'

/** A network with the appliance on it, whose DHCP server names it by the recipe that it shows. */
async function startApplianceLab(folder: string) {
  await using undo = new AsyncDisposableStack()
  const disk = await writeServerDisk(folder)
  const namespace = undo.use(await createNamespace())
  const own = [`dhcp-host=${APPLIANCE_MAC},${ADDRESS}`]
  await startDhcp(namespace, { folder, server: ADDRESS, loader: 'grub', own })
  const lan = { namespace, address: ADDRESS }
  const server = undo.use(await startAppliance({ firmware: 'uefi', disk, lan }))
  const { qemu, url } = server
  const password = readPassword(await waitForLogin(qemu))
  await waitForHealth(server)
  const { cookie } = await openSession(url, password)
  const cache = await namespace.openDoor(8081, ADDRESS)
  const held = undo.move()
  const lab: MachineLab = {
    folder,
    ask: createAsk(url, cookie),
    start: (way, machine) => startMachine(namespace, way, machine),
    said: () => `the appliance's serial log is ${qemu.keepLog()}`,
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
  return {
    qemu,
    password,
    lab,
    /** As the operator, with a session of the server, which the cache shares. */
    async send(to: 'server' | 'cache', method: string, path: string, body: Blob | string) {
      const headers = typeof body === 'string' ? { 'content-type': 'application/json' } : {}
      const range = typeof body === 'string' ? {} : rangeOf(body)
      const answer = await fetch(`${to === 'server' ? url : cache}${path}`, {
        method,
        headers: { cookie, ...headers, ...(to === 'cache' ? range : {}) },
        body,
      })
      const text = await answer.text()
      assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`)
      return text
    },
  }
}

const rangeOf = ({ size }: Blob) => ({ 'content-range': `bytes 0-${size - 1}/${size}` })

type ApplianceLab = Awaited<ReturnType<typeof startApplianceLab>>

/** The files of a release, and an image that Secure Boot starts. */
async function fill({ send }: ApplianceLab, folder: string): Promise<void> {
  const { kernel, initrd, squashfs, checksums } = await openTrio()
  for (const path of [kernel, initrd, squashfs, checksums]) {
    await send('server', 'PUT', `/boot/${basename(path)}`, await openAsBlob(path))
  }
  const raw = join(folder, 'image')
  await makeSecureDisk(await (await openDebianImage()).file('img'), raw, await openSecureBoot())
  await $({ quiet: true })`zstd -q -3 -T0 --rm ${raw} -o ${join(folder, IMAGE)}`
  const image = await openAsBlob(join(folder, IMAGE))
  const about = JSON.stringify({ name: IMAGE, size_bytes: image.size })
  const { id } = JSON.parse(await send('cache', 'POST', '/uploads', about))
  await send('cache', 'PATCH', `/uploads/${id}`, image)
  await send('cache', 'POST', `/uploads/${id}/complete`, '')
}

run('a machine with Secure Boot beside it: discovered, bound, flashed, booted', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-appliance-'))
  const appliance = await startApplianceLab(folder.path)
  await using pxe = await openMachine(appliance.lab, IMAGE)
  await fill(appliance, folder.path)
  await discover(pxe, 'secure-pxe')
  assert.is((await pxe.readMachine()).secure_boot, true)
  await appliance.send('server', 'POST', '/admin/cache/refresh', '')
  await pxe.bind()
  await flash(pxe, 'secure-pxe')
  const [last] = await pxe.readRuns()
  assert.equal([last?.result, last?.verified, last?.image?.name], ['done', true, IMAGE])
  assert.match(last?.image?.src ?? '', `http://${ADDRESS}:8081/`)
  {
    await using machine = await pxe.start('secure-pxe')
    await machine.waitFor(/flasher-test login: /, PATIENCE)
  }
  // Where the DHCP server cannot be changed.
  const { qemu, password } = appliance
  await login(qemu, password)
  const activate = `flasher-web-activate-pxe activate $(ls /sys/class/net | grep ^e) 192.168.99.0/24 8080`
  assert.match(
    await runAsRoot(qemu, password, activate),
    /PXE is active on e\w+, 192\.168\.99\.0\/24/,
  )
})

test.run()
