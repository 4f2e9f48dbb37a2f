/** The server appliance boots, serves, tells its password, and keeps its state over an update and a rollback. */
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { opened } from '#test/support/opened.ts'
import { findBuildObstacle } from '#test/support/vm/built-images.ts'
import {
  login,
  readPassword,
  runAsRoot,
  startAppliance,
  waitForHealth,
  waitForLogin,
  writeSeed,
  writeServerDisk,
} from '#test/support/vm/server-appliance.ts'
import { updateAndRollBack } from '#test/support/vm/server/update.ts'

const test = suite('server appliance')
const obstacle = findBuildObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

const folder = opened(test, () => mkdtempDisposable(join(tmpdir(), 'flasher-server-')))

run('a fresh disk boots by BIOS, is updated and rolled back, and keeps its state', () =>
  updateAndRollBack({ arch: 'x86_64', firmware: 'bios', folder: folder().path }),
)

run('nginx takes the place of the image cache, and gives it back', async () => {
  await using machine = await startAppliance({
    firmware: 'bios',
    disk: await writeServerDisk(folder().path),
  })
  const { qemu } = machine
  const password = readPassword(await waitForLogin(qemu))
  await waitForHealth(machine)
  await login(qemu, password)
  const isNginx = 'curl -sSI http://127.0.0.1:8081/healthz | grep -i ^server:.nginx'
  const ready =
    'curl -fsS --retry 60 --retry-delay 1 --retry-all-errors -o /dev/null http://127.0.0.1:8081/healthz'
  await runAsRoot(qemu, password, 'flasher-setup --rack-cache http://10.0.2.2:8081')
  await runAsRoot(qemu, password, `${ready} && ${isNginx}`)
  await runAsRoot(qemu, password, 'flasher-setup --rack-cache none')
  await runAsRoot(qemu, password, `${ready} && ! ${isNginx}`)
})

run('a seed chooses the earlier line and its password, under Secure Boot', async () => {
  const disk = await writeServerDisk(folder().path)
  const seed = writeSeed(folder().path, {
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
