/** A machine that is ready after its first boot: a template, written by the engine, read by the real cloud-init. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseMac } from '#kit/net/rules/mac.ts'
import { renderFirstBoot } from '#engine/first-boot/rules/seed.ts'
import { parseTemplate } from '#engine/first-boot/rules/template.ts'
import { WHOLE_DISK } from '#engine/flash/rules/flash-plan.ts'
import { createFlasher } from '#engine/flash/flasher.ts'
import { findImageObstacle } from '#test/support/disk/debian-image.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { openCloudImage } from '#test/support/vm/cloud-image.ts'
import { startQemu } from '#test/support/vm/qemu.ts'

const test = suite('first boot')
const obstacle = findImageObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

/** Seconds, ten times what a free machine needs. */
const PATIENCE = 900
const KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBf6Hq7lBqJUV0n0qv3n4l5w8y2Y1x0c9d8e7f6a5b4c ada@lab'
const REPORT =
  'echo "{{label.rack}}: $(hostname) $(sudo -u ada sudo -n id -un) $(cat /home/ada/.ssh/authorized_keys)" >/dev/console'

function renderSeed() {
  const mac = parseMac('52:54:00:12:34:56')
  const template = parseTemplate({
    hostname: 'web-{{label.rack}}',
    users: [{ name: 'ada', ssh_keys: [KEY], sudo: true }],
    commands: [REPORT],
    network: 'version: 2\nethernets: {}\n',
  })
  if (!mac.ok || !template.ok) throw new Error('the template is refused')
  const subject = { mac: mac.value, name: null, serial: null, labels: ['rack-7'] }
  const options = { instance: 'flasher-test', secrets: 'filled' } as const
  const rendered = renderFirstBoot(template.value, subject, options)
  if (!rendered.ok) throw new Error(rendered.refusal)
  return rendered.value
}

run('host name, user, key and commands are there at the first boot', async () => {
  await using disk = await createLoop({ megabytes: 1024 })
  const flasher = createFlasher({ env: process.env })
  const { signal } = new AbortController()
  const order = {
    image: await openCloudImage(),
    format: null,
    targets: [{ path: disk.device }],
    options: WHOLE_DISK,
    firstBoot: renderSeed(),
  }
  const [outcome] = await flasher.flash(order, { signal, onEvent: () => {} })
  assert.is(outcome?.kind, 'done', outcome?.kind === 'done' ? '' : outcome?.reason)

  const drive = `if=none,id=disk,format=raw,snapshot=on,file=${disk.device}`
  const args = ['-drive', drive, '-device', 'virtio-blk-pci,drive=disk']
  await using machine = await startQemu({ megabytes: 1024, args })
  const said = await machine.waitFor(/7: web-7 root ssh-ed25519 \S+ ada@lab/, PATIENCE)
  assert.match(said, KEY)
})

test.run()
