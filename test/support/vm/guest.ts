/** A Debian guest that runs our scripts: for disks and kernel features that this host may lack. */
import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { openDebianImage } from '../disk/debian-image.ts'
import { GUEST_INIT, ROOT_PARTUUID } from '../disk/debian-tree.ts'
import { planDisks, type GuestDisk } from './guest-disk.ts'
import { openGuestSession, type GuestSession, type Ran } from './guest-session.ts'
import { startQemu, type Qemu } from './qemu.ts'

const CHECKOUT = join(import.meta.dirname, '../../..')
/** Seconds to the first script, and for one script when the caller names none: ten times enough. */
const PATIENCE = 240

export interface GuestOptions {
  readonly disks: readonly GuestDisk[]
  /** Folders of the host that the guest reads as `/mnt/<name>`, beside `checkout` and `node`. */
  readonly shares?: Readonly<Record<string, string>>
  /** More for QEMU, such as another firmware. */
  readonly args?: readonly string[]
}

export interface Guest extends AsyncDisposable {
  /** Runs a bash script as root in the checkout, beside others that may be running. */
  run(script: string, seconds?: number): Promise<Ran>
  /** As `run`, but an exit code other than 0 is an Error with what the script said. */
  require(script: string, seconds?: number): Promise<string>
  /** Where the content of a disk lies on the host. */
  fileOf(disk: string): string
  /** Takes a disk away from under the guest. */
  pull(disk: string): Promise<void>
}

/** Needs what the Debian image needs, and the package qemu-system-x86. */
export async function startGuest({
  disks,
  shares = {},
  args: more = [],
}: GuestOptions): Promise<Guest> {
  const image = await openDebianImage()
  const folder = await mkdtemp(join(tmpdir(), 'flasher-guest-'))
  await using undo = new AsyncDisposableStack()
  undo.defer(() => rm(folder, { recursive: true, force: true }))
  for (const { name, megabytes } of disks) await makeSparse(join(folder, name), megabytes)
  const socket = join(folder, 'agent.socket')
  const folders = { checkout: CHECKOUT, node: dirname(process.execPath), ...shares }
  const args = [
    ...planSystem(image.kernel, image.initrd, await image.file('img')),
    ...planShares(folders),
    ...planAgent(socket),
    ...planDisks(disks, folder),
    ...more,
  ]
  const machine = undo.use(await startQemu({ megabytes: 1536, args }))
  const session = await openGuestSession(socket, machine.ended)
  await machine.waitFor(/flasher-guest: ready/, PATIENCE)
  const run = createRun(session, machine)
  const held = undo.move()
  return {
    run,
    async require(script, seconds) {
      const { exitCode, stdout, stderr } = await run(script, seconds)
      if (exitCode === 0) return stdout
      throw new Error(`exit code ${exitCode} in the guest of: ${script}\n${stdout}${stderr}`)
    },
    fileOf: (disk) => join(folder, disk),
    async pull(disk) {
      await machine.monitor.execute('device_del', { id: disk })
    },
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

function createRun(session: GuestSession, machine: Qemu): Guest['run'] {
  return async (script, seconds = PATIENCE) => {
    try {
      return await session.run(script, seconds)
    } catch (error) {
      throw new Error(`the serial log is ${machine.keepLog()}`, { cause: error })
    }
  }
}

async function makeSparse(path: string, megabytes: number) {
  await using file = await open(path, 'wx')
  await file.truncate(megabytes * 2 ** 20)
}

const planSystem = (kernel: string, initrd: string, root: string): readonly string[] => [
  '-kernel',
  kernel,
  '-initrd',
  initrd,
  '-append',
  `console=ttyS0 loglevel=4 panic=-1 root=PARTUUID=${ROOT_PARTUUID} rw init=${GUEST_INIT}`,
  '-drive',
  `if=none,id=system,format=raw,snapshot=on,file=${root}`,
  '-device',
  'virtio-blk-pci,drive=system,serial=SYSTEM',
]

const planShares = (folders: Readonly<Record<string, string>>): readonly string[] =>
  Object.entries(folders).flatMap(([name, path]) => [
    '-virtfs',
    `local,path=${path},mount_tag=${name},security_model=none,readonly=on,multidevs=remap`,
  ])

const planAgent = (socket: string): readonly string[] => [
  '-chardev',
  `socket,id=agent,path=${socket},server=on,wait=off`,
  '-device',
  'virtio-serial-pci',
  '-device',
  'virtserialport,chardev=agent,name=flasher-agent',
]
