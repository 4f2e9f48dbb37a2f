/** An installed Debian with an identity of its own, and root's look at it from its console. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { $ } from 'zx'
import { mounted } from '../disk/capture-disks.ts'
import { openDebianImage } from '../disk/debian-image.ts'
import { PATIENCE, waitForEnd } from '../vm/pxe-flash.ts'
import type { Qemu } from '../vm/qemu.ts'

const run = $({ quiet: true, verbose: false })

/** Where the root file system of the Debian image begins. */
export const ROOT_OFFSET: number = 17 * 2 ** 20

/** Writes a disk whose system gets its machine-id at its first boot; root needs no password. */
export async function installDebian(disk: string): Promise<void> {
  await run`cp --sparse=always ${await (await openDebianImage()).file('img')} ${disk}`
  await mounted(disk, [`--offset=${ROOT_OFFSET}`], async (root) => {
    await run`mkdir -p ${join(root, 'etc/ssh')}`
    await run`ssh-keygen -A -f ${root}`
    await writeFile(join(root, 'etc/machine-id'), '')
    await edit(join(root, 'etc/shadow'), /^root:[^:]*:/m, 'root::')
    // `login` gives up after a minute, which a busy host may take for the session alone.
    await edit(join(root, 'etc/login.defs'), /^LOGIN_TIMEOUT.*$/m, 'LOGIN_TIMEOUT 0')
  })
}

async function edit(path: string, pattern: RegExp, text: string) {
  const before = await readFile(path, 'utf8')
  const after = before.replace(pattern, text)
  if (after === before) throw new Error(`${path} does not hold ${pattern}`)
  await writeFile(path, after)
}

export interface SeenDebian {
  readonly machineId: string
  /** The size of the root file system. */
  readonly rootBytes: number
  /** The size of all SSH host keys together. */
  readonly keyBytes: number
}

const LOOK = [
  'echo id=$(cat /etc/machine-id)',
  'root=$(df -B1 --output=size / | tail -n 1)',
  'keys=$(cat /etc/ssh/ssh_host_* | wc -c) seen',
].join(' ')
const SEEN = /id=(\w{32}) root=(\d+) keys=(\d+) seen/

/** Waits for the login of a machine that boots its disk, looks round as root, and shuts it down. */
export async function visitDebian(machine: Qemu): Promise<SeenDebian> {
  await machine.waitFor(/flasher-test login: /, PATIENCE)
  machine.send('root\r')
  await machine.waitFor(/root@flasher-test:~# /, PATIENCE)
  machine.send(`${LOOK}\r`)
  const [, machineId = '', root, keys] = SEEN.exec(await machine.waitFor(SEEN, PATIENCE)) ?? []
  machine.send('poweroff\r')
  await waitForEnd(machine)
  return { machineId, rootBytes: Number(root), keyBytes: Number(keys) }
}

/** SHA-256 of a whole disk. */
export async function readDigest(disk: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(disk, { highWaterMark: 2 ** 20 }), hash)
  return hash.digest('hex')
}
