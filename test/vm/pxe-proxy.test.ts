/** PXE proxy-DHCP, activated on the settings page: real firmware beside a DHCP server that knows nothing of it. */
import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createDnsmasqHost, HOST_ADDRESS } from '#test/support/net/dnsmasq-host.ts'
import { PXE_PORT, startPxeServer } from '#test/support/net/pxe-server.ts'
import { findBuildObstacle, openIpxe } from '#test/support/vm/built-images.ts'
import { DISK_SAYS, FIRMWARE, makeTalkingDisk } from '#test/support/vm/ipxe.ts'
import { startQemu } from '#test/support/vm/qemu.ts'

const test = suite('PXE proxy-DHCP')
const MAC = '52:54:00:12:34:56'
/** Seconds, ten times what a free machine needs. */
const PATIENCE = 600

/** A host whose operator has activated PXE, and what starts a machine on its wire. */
async function startHost(port: string = PXE_PORT) {
  await using undo = new AsyncDisposableStack()
  const host = undo.use(await createDnsmasqHost())
  const server = undo.use(await startPxeServer(host, port))
  const wire = await host.openWire()
  const form = { interface: 'lan0', subnet: '192.168.98.0/24' }
  assert.match(await server.post('/ui/settings/pxe-activate', form), 'Deactivate PXE')
  await server.post(`/ui/machines/${MAC}`, { boot_policy: 'local' })
  const disk = await makeTalkingDisk(host.folder)
  const held = undo.move()
  return {
    host,
    server,
    start(firmware: keyof typeof FIRMWARE, rom: string) {
      const card = `virtio-net-pci,netdev=net,mac=${MAC},bootindex=1${rom}`
      const drive = `if=none,id=disk,format=raw,file=${disk}`
      const devices = [card, 'virtio-rng-pci', 'ide-hd,drive=disk,bootindex=2']
      const args = [
        ...FIRMWARE[firmware],
        '-netdev',
        wire.netdev,
        '-drive',
        drive,
        ...devices.flatMap((device) => ['-device', device]),
      ]
      return startQemu({ namespace: wire.namespace, megabytes: 512, args })
    },
    /** The machine as the server has it: it asked from an address that the other DHCP server gave it. */
    async assertSeen() {
      const seen = JSON.parse(await server.get(`/machines/${MAC}`))
      assert.match(seen.last_seen_ip, /^192\.168\.98\.[6-9]\d$/)
      assert.ok(seen.last_seen_at)
    },
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

test("a BIOS with iPXE in its card's ROM", async () => {
  await using lan = await startHost()
  await using machine = await lan.start('bios', '')
  const chained = `http://${HOST_ADDRESS}:${PXE_PORT}/pxe-bootstrap.ipxe`
  await machine.waitFor(new RegExp(RegExp.escape(chained)), PATIENCE)
  await machine.waitFor(new RegExp(`${MAC} boots its own disk`), PATIENCE)
  await machine.waitFor(new RegExp(DISK_SAYS), PATIENCE)
  await lan.assertSeen()
})

const builds = findBuildObstacle() === null ? test : test.skip

builds('UEFI firmware, which fetches our iPXE by TFTP first', async () => {
  // The port that our iPXE looks on: it knows the proxy, not what the proxy would tell another iPXE.
  await using lan = await startHost('8080')
  await copyFile((await openIpxe()).x86_64, join(lan.host.folder, 'tftp/ipxe.efi'))
  await using machine = await lan.start('uefi', ',romfile=')
  await machine.waitFor(new RegExp(`${MAC} boots its own disk`), PATIENCE)
  await lan.assertSeen()
})

test.run()
