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

/** The files that boot scripts name; swapped as one. */
type BootSet = CompleteSet & LiveSet

export type ActiveSets = PerArch<BootSet | null>

/**
 * A file copied by hand counts once it has not changed for so long. What its time says counts for one
 * that lies behind the clock; one that lies ahead of it, from a file server or from before the clock was
 * set back, must have had this time for so long, but at the start: who copies waits for no server.
 */
const REST_MS = 3000

/** What the latest look has found. */
export interface Scan {
  record: BootRecord
  names: readonly string[]
  complete: readonly CompleteSet[]
  active: ActiveSets
  /** Files that came whole, by rename: they need not rest before they count. */
  readonly whole: Set<string>
  /** Since when, in milliseconds of the steady clock, each file has the time that it has; null: no look yet. */
  seen: ReadonlyMap<string, FileAge> | null
}

interface FileAge {
  readonly changedMs: number
  readonly since: number
}

interface ScanDependencies {
  readonly dir: string
  /** This runs after a look that found other sets in force than before. */
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

/** Looks once and keeps in `found` what there is; which sets are another system's is judged by `bootSets`. */
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

/** Returns for how many milliseconds each file has the time that it has, as far as was looked; at the start for ever. */
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
