/** The server appliance boots, serves, tells its password, and keeps its state over an update and a rollback. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { findBuildObstacle, openServer } from '../../support/vm/built-images.ts'
import type { Qemu } from '../../support/vm/qemu.ts'
import {
  login,
  readPassword,
  runAsRoot,
  startAppliance,
  waitForHealth,
  waitForLogin,
  writeSeed,
  writeServerDisk,
} from '../../support/vm/server-appliance.ts'
import { serveRelease } from '../../support/vm/server-release.ts'

const test = suite('server appliance')
const obstacle = findBuildObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

const folder = await mkdtemp(join(tmpdir(), 'flasher-server-'))
test.after(() => rm(folder, { recursive: true }))
const MINUTE = 60
/** What the boot loader starts after the update. */
const NEXT = '99.0.0'

const restart = (qemu: Qemu, password: string) =>
  qemu.send(`echo '${password}' | sudo -S -p '' systemctl reboot\r`)

run('a fresh disk boots by BIOS, is updated and rolled back, and keeps its state', async () => {
  const disk = await writeServerDisk(folder)
  const { version, ...files } = await openServer()
  await using site = await serveRelease({ ...files, version: NEXT })
  await using machine = await startAppliance({ firmware: 'bios', disk, restarts: true })
  const { qemu } = machine
  await qemu.waitFor(/the state partition has [23]\d{3} MiB/, 5 * MINUTE)
  const screen = await waitForLogin(qemu)
  assert.match(screen, new RegExp(`Flasher server ${version}, current line`))
  const password = readPassword(screen)
  await waitForHealth(machine)

  await login(qemu, password)
  await runAsRoot(qemu, password, `flasher-setup --releases http://10.0.2.2:${site.port}`)
  await runAsRoot(qemu, password, 'flasher-update install')
  assert.ok(site.requests.includes('/releases/latest/download/SHA256SUMS'))
  restart(qemu, password)
  await qemu.waitFor(new RegExp(`looking for the slot of ${NEXT}`), 5 * MINUTE)
  const again = await waitForLogin(qemu)
  assert.match(again, new RegExp(`Password +${password}`))
  await login(qemu, password)
  const wait = 'systemctl is-active --wait flasher-confirm; systemctl start flasher-confirm'
  await runAsRoot(qemu, password, wait)
  assert.match(await runAsRoot(qemu, password, 'flasher-update'), new RegExp(`starts +${NEXT}`))

  await runAsRoot(qemu, password, 'flasher-update rollback')
  restart(qemu, password)
  await qemu.waitFor(
    new RegExp(`looking for the slot of ${version.replaceAll('.', '\\.')}`),
    5 * MINUTE,
  )
  assert.match(await waitForLogin(qemu), new RegExp(`Password +${password}`))
  await waitForHealth(machine)
})

run('a seed chooses the earlier line and its password, under Secure Boot', async () => {
  const disk = await writeServerDisk(folder)
  const seed = writeSeed(folder, {
    'meta-data': 'instance-id: seeded\n',
    'user-data': [
      '#cloud-config',
      'write_files:',
      '  - {path: /etc/flasher/flasher.env, content: "FLASHER_LINE=earlier\\n"}',
      'chpasswd: {expire: false, users: [{name: flasher, password: seeded-secret, type: text}]}',
      '',
    ].join('\n'),
  })
  await using machine = await startAppliance({ firmware: 'secure', disk, seed })
  const { qemu, url } = machine
  const screen = await waitForLogin(qemu)
  assert.match(screen, /earlier line/, screen)
  await waitForHealth(machine)
  const post = (path: string, body: string, cookie = '') =>
    fetch(`${url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', origin: url, cookie },
      body,
      redirect: 'manual',
    })
  const answer = await post('/ui/login', 'password=seeded-secret')
  assert.is(answer.status, 303)
  const [cookie = ''] = answer.headers.getSetCookie().map((one) => one.split(';')[0] ?? '')

  // By sudo, within the unit's sandbox, with a real systemd and dnsmasq.
  const readSettings = async () =>
    await (await fetch(`${url}/ui/settings`, { headers: { cookie } })).text()
  const device = /<option value="([\w-]+)"[^>]*>[^<]*10\.0\.2\.0\/24/.exec(
    await readSettings(),
  )?.[1]
  const active = await post('/ui/settings/pxe-activate', `interface=${device}&subnet=`, cookie)
  assert.is(active.status, 303)
  assert.match(await readSettings(), 'Deactivate PXE')
  await post('/ui/settings/pxe-deactivate', '', cookie)
  assert.not.match(await readSettings(), 'Deactivate PXE')
})

test.run()
