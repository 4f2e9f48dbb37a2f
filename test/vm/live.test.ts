/** The live system beyond the wizard's first screen: its consoles, its units, and SSH for one key. */
import { execFile, execFileSync } from 'node:child_process'
import { mkdtempDisposableSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { KERNEL_ARGS, LIVE_PATHS } from '#appliance/contract.ts'
import { findBuildObstacle, openIso, openTrio } from '#test/support/vm/built-images.ts'
import { startNetboot } from '#test/support/vm/netboot.ts'
import { findPort } from '#test/support/http/ports.ts'

const test = suite('live')
const obstacle = findBuildObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip
const execute = promisify(execFile)

/** Seconds, ten times what a free machine needs. */
const PATIENCE = 300

/** A card of its own for SSH: what the initrd did with the first one must not matter. */
const secondCard = (port: number) => [
  '-netdev',
  `user,id=ssh,net=10.9.0.0/24,hostfwd=tcp:127.0.0.1:${port}-:22`,
  '-device',
  'virtio-net-pci,netdev=ssh',
]

const makeKey = (path: string) => {
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'a tester', '-f', path])
  return readFileSync(`${path}.pub`, 'utf8').trim()
}

interface Login {
  readonly port: number
  readonly key: string
}

const logIn = ({ port, key }: Login, script: string) => {
  const settings = [
    'BatchMode=yes',
    'ConnectTimeout=20',
    'IdentitiesOnly=yes',
    'LogLevel=ERROR',
    'StrictHostKeyChecking=no',
    'UserKnownHostsFile=/dev/null',
  ]
  const options = settings.flatMap((setting) => ['-o', setting])
  return execute('ssh', [...options, '-i', key, '-p', String(port), 'root@127.0.0.1', script])
}

/** Keeps trying while the guest still starts its SSH. */
async function logInSoon(login: Login, script: string): Promise<string> {
  for (let tries = 0; ; tries += 1) {
    try {
      return (await logIn(login, script)).stdout
    } catch (error) {
      if (tries * 3 > PATIENCE) throw error
      await pause(3000)
    }
  }
}

run('the wizard is on every console, nothing has failed, and one key may log in', async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-live-'))
  const key = join(folder.path, 'key')
  const quoted = `"${KERNEL_ARGS.sshKey}=${makeKey(key)}"`
  const other = join(folder.path, 'other')
  makeKey(other)
  const port = await findPort()
  const second = join(folder.path, 'second-line')
  await using boot = await startNetboot(await openTrio(), {
    isAlone: true,
    append: [quoted],
    args: [...secondCard(port), '-serial', `file:${second}`],
  })
  await boot.machine.waitFor(/Images in: /, PATIENCE)
  const told = await logInSoon(
    { port, key },
    [
      'systemctl list-units --plain --no-legend "flasher-console@*" | cut -d" " -f1',
      'systemctl --failed --plain --no-legend',
      'ls /etc/ssh/ssh_host_* 2>/dev/null',
      'cat /proc/sys/kernel/hostname',
    ].join('; '),
  )
  assert.equal(told.trim().split('\n'), [
    'flasher-console@tty1.service',
    'flasher-console@ttyS0.service',
    'flasher-console@ttyS1.service',
    'flasher',
  ])
  assert.match(readFileSync(second, 'latin1'), 'Images in: ')
  const refused = await logIn({ port, key: other }, 'true').catch((error: unknown) => String(error))
  assert.match(String(refused), /Permission denied/)
})
/** The one chip answers where ttyS3 is looked for; a disk inside and a stick both carry our images. */
const ODD_MACHINE = (iso: string) =>
  [
    ['-global', 'isa-serial.iobase=0x2e8', '-global', 'isa-serial.irq=3', '-device', 'qemu-xhci'],
    ...['inside', 'stick'].map((id) => [
      '-drive',
      `if=none,id=${id},format=raw,snapshot=on,file=${iso}`,
    ]),
    ['-device', 'nvme,drive=inside,serial=INSIDE'],
    ['-device', 'usb-storage,drive=stick,removable=on'],
  ].flat()

run('no wizard on a console without a chip, and no images of a disk inside', async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-live-'))
  const key = join(folder.path, 'key')
  const port = await findPort()
  await using boot = await startNetboot(await openTrio(), {
    isAlone: true,
    append: [`"${KERNEL_ARGS.sshKey}=${makeKey(key)}"`],
    args: [...secondCard(port), ...ODD_MACHINE(await openIso())],
  })
  await boot.machine.waitFor(/Images in: /, PATIENCE)
  const told = await logInSoon(
    { port, key },
    [
      'cat /sys/class/tty/console/active /sys/class/tty/ttyS0/type',
      'systemctl list-units --plain --no-legend "flasher-console@*" | cut -d" " -f1',
      `until mountpoint -q ${LIVE_PATHS.images}; do sleep 1; done`,
      'lsblk -nro NAME,MOUNTPOINT | grep -c " /"',
      `findmnt -no SOURCE ${LIVE_PATHS.images}`,
    ].join('; '),
  )
  assert.equal(told.trim().split('\n'), [
    'ttyS0',
    '0',
    'flasher-console@tty1.service',
    'flasher-console@ttyS3.service',
    '2',
    '/dev/sda3',
  ])
})

test.run()
