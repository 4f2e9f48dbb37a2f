/** Looks at the boot directory: which files have come to rest, which sets they complete, and which set is active. */
import { join } from 'node:path'
import type { LiveSet } from './rules/boot-decision.ts'
import {
  BOOT_ARCHS,
  decideActive,
  perArch,
  setFileName,
  TRIO,
  type BootArch,
  type BootRecord,
  type CompleteSet,
  type PerArch,
  type SetFile,
} from './rules/boot-set.ts'
import { listFolder, readListedDigest } from './boot-folder.ts'
import type { BootSets } from './boot-sets.ts'

type BootSet = CompleteSet & LiveSet

export type ActiveSets = PerArch<BootSet | null>

/**
 * A file copied by hand counts once it has been unchanged this long, by its time if that is in the
 * past. A future time (a file server's clock, or ours set back) must have been the same for so
 * long, except at start, where files count at once.
 */
const REST_MS = 3000

export interface Scan {
  record: BootRecord
  names: readonly string[]
  complete: readonly CompleteSet[]
  active: ActiveSets
  /** Files that came whole, by rename, count at once. */
  readonly whole: Set<string>
  /** By file: since when it has its time, in milliseconds of a steady clock; null: no look yet. */
  seen: ReadonlyMap<string, FileAge> | null
}

interface FileAge {
  readonly changedMs: number
  readonly since: number
}

interface ScanDependencies {
  readonly dir: string
  changed?(): void
  now(): Date
}

export const nothingFound = (record: BootRecord): Scan => ({
  record,
  names: [],
  complete: [],
  active: perArch(() => null),
  whole: new Set(),
  seen: null,
})

/** Updates `found`. `bootSets` decides which sets are another system's. */
export async function look(
  { dir, now, changed }: ScanDependencies,
  bootSets: BootSets,
  found: Scan,
): Promise<void> {
  const { record, whole } = found
  const files = await listFolder(dir)
  const at = now().getTime()
  const inForce = BOOT_ARCHS.flatMap((arch) =>
    [found.active[arch]?.version, record.active[arch]].flatMap((version) =>
      version ? TRIO.map((part) => setFileName({ arch, version, part })) : [],
    ),
  )
  const restOf = takeRests(found, files)
  const isAtRest = (name: string, changedMs: number) =>
    at - changedMs >= REST_MS || (changedMs - at >= REST_MS && restOf(name) >= REST_MS)
  const ripe = files.filter(
    ({ name, changedMs }) => whole.has(name) || inForce.includes(name) || isAtRest(name, changedMs),
  )
  found.names = files.map(({ name }) => name)
  found.complete = await bootSets.choose(ripe, record)
  const active = {
    x86_64: await readActive(dir, 'x86_64', found),
    arm64: await readActive(dir, 'arm64', found),
  }
  const isNew = JSON.stringify(active) !== JSON.stringify(found.active)
  found.active = active
  if (isNew) changed?.()
}

/** How many milliseconds each file has had its time, as far as observed; infinite at the start. */
function takeRests(
  found: Scan,
  files: readonly { readonly name: string; readonly changedMs: number }[],
): (name: string) => number {
  const before = found.seen
  const now = performance.now()
  const seen = new Map(
    files.map(({ name, changedMs }) => {
      const known = before?.get(name)
      return [name, known?.changedMs === changedMs ? known : { changedMs, since: now }]
    }),
  )
  found.seen = seen
  return (name) => (before === null ? Infinity : now - (seen.get(name)?.since ?? now))
}

async function readActive(
  dir: string,
  arch: BootArch,
  { record, complete }: Scan,
): Promise<BootSet | null> {
  const version = decideActive(arch, record, complete)
  if (version === null) return null
  const name = (part: SetFile['part']) => setFileName({ arch, version, part })
  const [vmlinuz, initrd, squashfs] = [name('vmlinuz'), name('initrd'), name('squashfs')]
  const squashfsSha256 = await readListedDigest(join(dir, name('checksums')), squashfs)
  return { arch, version, vmlinuz, initrd, squashfs, squashfsSha256 }
}

export const versionsOf = ({ active }: Scan): PerArch<string | null> =>
  perArch((arch) => active[arch]?.version ?? null)
