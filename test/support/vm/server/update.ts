/** A fresh server appliance is updated and rolled back, and keeps its state: the same on every processor. */
import * as assert from 'uvu/assert'
import type { Arch } from '#appliance/appliance.ts'
import { openServer } from '../built-images.ts'
import type { Qemu } from '../qemu.ts'
import {
  login,
  readPassword,
  runAsRoot,
  startAppliance,
  waitForHealth,
  waitForLogin,
  writeServerDisk,
  type ApplianceFirmware,
} from '../server-appliance.ts'
import { serveRelease } from './release.ts'

interface UpdateOptions {
  readonly arch: Arch
  readonly firmware: ApplianceFirmware
  /** Where its disk is written. */
  readonly folder: string
}

/** What the boot loader starts after the update. */
const NEXT = '99.0.0'
/** Seconds, ten times what a free machine needs. */
const PATIENCE = 600
/** The login screen with the address that QEMU gives a guest. */
const SCREEN = /Web interface +http:\/\/10\.0\.2\.15:8080[^]*flasher-server login: /

const restart = (qemu: Qemu, password: string) =>
  qemu.send(`echo '${password}' | sudo -S -p '' systemctl reboot\r`)

const waitForSlot = (qemu: Qemu, version: string) =>
  qemu.waitFor(new RegExp(`looking for the slot of ${version.replaceAll('.', '\\.')}`), PATIENCE)

export async function updateAndRollBack({ arch, firmware, folder }: UpdateOptions): Promise<void> {
  const disk = await writeServerDisk(folder, arch)
  const { version, ...files } = await openServer(arch)
  await using site = await serveRelease({ ...files, arch, version: NEXT })
  await using machine = await startAppliance({ firmware, disk, restarts: true })
  const { qemu } = machine
  await qemu.waitFor(/the state partition has [23]\d{3} MiB/, PATIENCE)
  // It is drawn again when the address is there.
  const screen = await qemu.waitFor(SCREEN, PATIENCE)
  assert.match(screen, new RegExp(`Flasher server ${version}, current line`))
  const password = readPassword(screen)
  await waitForHealth(machine)

  await login(qemu, password)
  await runAsRoot(qemu, password, `flasher-setup --releases http://10.0.2.2:${site.port}`)
  const said = await runAsRoot(qemu, password, 'flasher-update install')
  assert.match(said, new RegExp(`${NEXT} starts at the next restart`))
  assert.ok(site.requests.includes('/releases/latest/download/SHA256SUMS'))
  restart(qemu, password)
  await waitForSlot(qemu, NEXT)
  const again = await waitForLogin(qemu)
  assert.match(again, new RegExp(`Password +${password}`))
  await login(qemu, password)
  const wait = 'systemctl is-active --wait flasher-confirm; systemctl start flasher-confirm'
  await runAsRoot(qemu, password, wait)
  assert.match(await runAsRoot(qemu, password, 'flasher-update'), new RegExp(`starts +${NEXT}`))

  await runAsRoot(qemu, password, 'flasher-update rollback')
  restart(qemu, password)
  await waitForSlot(qemu, version)
  assert.match(await waitForLogin(qemu), new RegExp(`Password +${password}`))
  await waitForHealth(machine)
}
