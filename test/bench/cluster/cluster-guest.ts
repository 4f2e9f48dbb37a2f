/** A machine of a storm that is not made up: QEMU boots the live system by way of any server and flashes a disk, again and again. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { z } from 'zod'
import { startQemu, type Qemu } from '#test/support/vm/qemu.ts'
import type { AskSite } from './cluster-ask.ts'
import type { Book } from './cluster-book.ts'
import type { OrderedImage } from './cluster-machine.ts'

export interface GuestOptions {
  readonly number: number
  /** The servers as the guest reaches them. */
  readonly servers: readonly string[]
  /** Two files with the same disk in them, so that each order is another one. */
  readonly images: readonly OrderedImage[]
  /** What a flashed disk holds. */
  readonly raw: { readonly path: string; readonly bytes: number }
  readonly ask: AskSite
  readonly book: Book
  /** Ends its life after the order under way. */
  readonly leaving: AbortSignal
  readonly signal: AbortSignal
}

const FoundRuns = z.object({
  runs: z.array(z.object({ id: z.string(), state: z.string(), verified: z.boolean().nullable() })),
})

const SERIAL = 'FLASHER0001'
const LOOK_MS = 5000
/** A boot, the wait in line and a flash, with a processor that others use as well. */
const BOOT_MS = 25 * 60_000
/** It ends when it restarts, so that one boot has one order at most. */
const MAX_BOOTS = 10

export type StormGuest = ReturnType<typeof createStormGuest>

export function createStormGuest(options: GuestOptions) {
  const { number, images, raw, ask, book, leaving, signal } = options
  const mac = `52:54:00:fe:00:${number.toString(16).padStart(2, '0')}`
  const find = (kind: Parameters<Book['find']>[0], text: string) =>
    book.find(kind, `${mac}: ${text}`)
  const done = new Set<string>()

  async function order({ ref }: OrderedImage) {
    const body = { boot_mode: 'flasher-flash-once', bty_image_ref: ref, target_disk_serial: SERIAL }
    await ask.insist(`/machines/${mac}`, { method: 'PUT', body: JSON.stringify(body) }, signal)
    book.count('orders of machines in QEMU acknowledged')
  }

  /** The runs that belong to no earlier order, the newest first. */
  async function readNewRuns() {
    const { text } = await ask.insist(`/machines/${mac}/runs?limit=200`, {}, signal)
    return FoundRuns.parse(JSON.parse(text)).runs.filter(({ id }) => !done.has(id))
  }

  /** Resolves once the machine has restarted; true: in time. */
  async function boot(folder: string, disk: string): Promise<boolean> {
    book.count('boots of machines in QEMU')
    await using machine = await startQemu({ megabytes: 1024, args: planMachine(folder, disk, mac) })
    const until = performance.now() + BOOT_MS
    const ended = machine.ended.then(() => true)
    for (;;) {
      if (await Promise.race([ended, sleep(LOOK_MS, false, { signal })])) return true
      // A guest that gets no processor for too long takes its timer for broken.
      if (await hasPanicked(machine)) {
        book.count('boots of machines in QEMU that had too little of a processor')
        return true
      }
      // What a firmware would boot is written last: the rest is there by then.
      if (!(await isBlank(disk)) && !(await isWhole(disk, raw))) {
        find('half', `what its disk begins with is there, and not the rest; ${machine.keepLog()}`)
        return false
      }
      if (performance.now() < until) continue
      find('gaveUp', `it did not restart; the serial log is ${machine.keepLog()}`)
      return false
    }
  }

  async function flash(folder: string) {
    const disk = join(folder, 'disk')
    await rm(disk, { force: true })
    await using file = await open(disk, 'wx')
    await file.truncate(raw.bytes)
    for (let boots = 0; boots < MAX_BOOTS; boots += 1) {
      if (!(await boot(folder, disk))) return
      const runs = await readNewRuns()
      for (const { id } of runs) done.add(id)
      if (runs.length > 1) find('restarted', `one order, and ${runs.length} runs`)
      if (runs.length === 0) continue
      const [{ state, verified } = { state: 'none', verified: null }] = runs
      if (state !== 'done' || verified !== true) return find('gaveUp', `its run is ${state}`)
      if (!(await isWhole(disk, raw))) return find('half', 'its disk is not what it was ordered')
      return book.count('flashes of machines in QEMU, their disks whole')
    }
    find('gaveUp', `no run in ${MAX_BOOTS} boots`)
  }

  return {
    async live() {
      const folder = await mkdtemp(join(tmpdir(), 'flasher-guest-'))
      try {
        await writeTftp(folder, options)
        for (let turn = number; !leaving.aborted; turn += 1) {
          const image = images[turn % images.length]
          if (image === undefined) return
          await order(image)
          await flash(folder)
        }
      } finally {
        await rm(folder, { recursive: true, force: true })
      }
    },
  }
}

/** DHCP names a script that asks the servers in turn, each machine in another order, until one answers. */
async function writeTftp(folder: string, { number, servers }: GuestOptions) {
  const at = number % servers.length
  const inTurn = [...servers.slice(at), ...servers.slice(0, at)]
  const lines = inTurn.map((url) => `chain ${url}/pxe-bootstrap.ipxe ||`)
  await mkdir(join(folder, 'tftp'))
  const script = ['#!ipxe', ':again', ...lines, 'sleep 2', 'goto again', ''].join('\n')
  await writeFile(join(folder, 'tftp/servers.ipxe'), script)
}

const planMachine = (folder: string, disk: string, mac: string): readonly string[] => [
  '-machine',
  'graphics=off',
  '-netdev',
  `user,id=net,tftp=${join(folder, 'tftp')},bootfile=servers.ipxe`,
  '-device',
  `virtio-net-pci,netdev=net,mac=${mac},bootindex=1`,
  '-device',
  'virtio-rng-pci',
  '-drive',
  `if=none,id=disk,format=raw,file=${disk}`,
  '-device',
  `virtio-blk-pci,drive=disk,serial=${SERIAL},bootindex=2`,
]

const hasPanicked = async ({ folder }: Qemu): Promise<boolean> =>
  (await readFile(join(folder, 'serial.log'), 'latin1')).includes('IO-APIC + timer doesn')

const HEAD_BYTES = 4096

async function isBlank(disk: string): Promise<boolean> {
  await using file = await open(disk)
  const { buffer } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0)
  return buffer.every((byte) => byte === 0)
}

const isWhole = (disk: string, { path, bytes }: GuestOptions['raw']): Promise<boolean> =>
  promisify(execFile)('cmp', ['--silent', '--bytes', String(bytes), disk, path]).then(
    () => true,
    () => false,
  )
