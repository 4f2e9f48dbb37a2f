/** What the servers of the benchmark start with: a fleet, a catalog, boot files, a token. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setFileName, TRIO } from '#fleet/boot/rules/boot-set.ts'
import { parseMac } from '#kit/net/rules/mac.ts'
import type { InventoryDisk } from '#engine/inventory/rules/machine.ts'
import { refOf } from '#engine/catalog/rules/catalog.ts'
import { createMachine, type Machine, parseRecord } from '#server/current/machines/rules/machine.ts'
import { createDatabase } from '#fleet/state/database.ts'
import { createKeptCatalogs } from '#engine/catalog/catalogs.ts'
import { createMachines } from '#fleet/state/machines.ts'
import { readVersion } from '#kit/host/package-manifest.ts'
import { createTokens } from '#fleet/access/tokens.ts'
import { macOf } from './server-wire.ts'
import { makeToken } from '#test/support/server/state.ts'

export const PASSWORD = 'benchmark'
export const LARGE_FILE = 'large.img'
export const LARGE_BYTES = 120_000_000
const IMAGES = 40

/** A state directory. */
export interface Folder extends AsyncDisposable {
  readonly path: string
  /** Nothing listens there: the catalog is the one that was kept. */
  readonly cacheUrl: string
  readonly bootDir: string
  readonly token: string
}

/** Small stand-ins of what a live system consists of. */
export const SMALL_FILES = TRIO.map((part) =>
  setFileName({ arch: 'x86_64', version: '1.0.0', part }),
)
const SMALL_BYTES = 16_384

export async function createFolder(machines: number): Promise<Folder> {
  const path = await mkdtemp(join(tmpdir(), 'flasher-bench-'))
  const bootDir = join(path, 'boot')
  const cacheUrl = 'http://127.0.0.1:9'
  await mkdir(bootDir)
  for (const name of SMALL_FILES) await writeFile(join(bootDir, name), Buffer.alloc(SMALL_BYTES, 7))
  await writeFile(join(bootDir, LARGE_FILE), Buffer.alloc(LARGE_BYTES, 7))
  const fetchedAt = new Date().toISOString()
  const text = JSON.stringify({ entries: Array.from({ length: IMAGES }, (_, n) => imageOf(n)) })
  const kept = createKeptCatalogs(join(path, 'catalog.toml'))
  await kept.write({ base: cacheUrl, fetchedAt, etag: null, text })
  const release = await readVersion()
  await using database = await createDatabase({
    path: join(path, 'state.db'),
    release,
    line: 'current',
  })
  const fleet = Array.from({ length: machines }, (_, n) => machineOf(n))
  await createMachines<Machine>(database, { parseRecord }).updateMany(
    fleet.map((machine) => ({ mac: machine.mac, change: () => machine, hardware: null })),
  )
  const wish = { name: 'bench', scopes: ['admin'], expires_at: null } as const
  const { token } = await makeToken(createTokens(database), wish)
  return {
    path,
    cacheUrl,
    bootDir,
    token,
    [Symbol.asyncDispose]: () => rm(path, { recursive: true }),
  }
}

const sourceOf = (n: number) => `https://images.example/system-${n}-amd64.img.zst`

const imageOf = (n: number) => ({
  name: `system-${n}-amd64.img.zst`,
  src: sourceOf(n),
  format: 'img.zst',
  arch: 'x86_64',
  sha256: n.toString(16).padStart(64, 'a'),
  size_bytes: 400_000_000 + n,
})

/** Set to be flashed once: the even ones have been, the odd ones wait for it. */
function machineOf(n: number): Machine {
  const mac = parseMac(macOf(n))
  const ref = refOf(sourceOf(n % IMAGES))
  if (!mac.ok || !ref.ok) throw new Error(`no machine ${n}`)
  const now = new Date(Date.now() - 3_600_000).toISOString()
  const made = createMachine(mac.value, 'flasher-flash-once', now)
  const isDone = n % 2 === 0
  return {
    ...made,
    discovered_at: now,
    last_seen_at: now,
    last_seen_ip: '127.0.0.1',
    labels: [`rack-${n % 40}`, `host-${n}`],
    bty_image_ref: ref.value,
    target_disk_serial: `SERIAL-${n}-0`,
    known_disks: disksOf(n),
    known_disks_at: now,
    last_flashed_at: isDone ? now : null,
    saw_flasher_boot: isDone,
    arch: 'x86_64',
    cycle: { ...made.cycle, finished_at: isDone ? now : null },
  }
}

const disksOf = (n: number): readonly InventoryDisk[] =>
  [0, 1].map((at) => ({
    path: `/dev/nvme${at}n1`,
    size: '953.9G',
    vendor: null,
    model: 'A disk of the usual kind',
    serial: `SERIAL-${n}-${at}`,
    tran: 'nvme',
    removable: false,
    readonly: false,
    size_bytes: 1_024_209_543_168,
  }))

/** The body of an inventory, with a hardware tree as long as that of a small server: some 50 KiB. */
export function renderInventory(): string {
  const parts = Array.from({ length: 160 }, (_, n) => ({
    id: `pci:${n}`,
    class: 'bridge',
    claimed: true,
    description: 'PCI bridge',
    product: `Host bridge number ${n}, second revision`,
    vendor: 'A maker of parts',
    businfo: `pci@0000:00:${n}.0`,
    capabilities: { pci: true, pm: 'Power Management', msi: 'Message Signalled Interrupts' },
  }))
  return JSON.stringify({
    disks: disksOf(0),
    lshw: { id: 'box', class: 'system', children: parts },
  })
}
