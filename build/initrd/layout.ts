/** The order of files in an initrd: what is needed to report a lack of memory is unpacked first. */
import type { Entry } from './newc.ts'

/** An empty file that comes last: without it `/init` knows that unpacking was incomplete. */
const COMPLETE = 'complete'

const MOUNT_POINTS = ['dev', 'proc', 'run', 'sys', 'sysroot', 'tmp']

/** Before devtmpfs is mounted, the kernel opens the first as standard input and output of `/init`. */
const DEVICES: readonly Entry[] = [
  { kind: 'device', name: 'dev/console', mode: 0o600, major: 5, minor: 1 },
  { kind: 'device', name: 'dev/null', mode: 0o666, major: 1, minor: 3 },
]

/**
 * Adds folders and devices, and orders all: folders first, then programs and settings, then
 * `lib/modules` and `lib/firmware`, then the file that marks completeness; each part sorted by
 * name.
 */
export function planLayout(entries: readonly Entry[]): readonly Entry[] {
  const all = [...entries, ...DEVICES]
  const folders = new Set(MOUNT_POINTS)
  for (const { name } of all) for (const folder of listParents(name)) folders.add(folder)
  const made = [...folders].map((name): Entry => ({ kind: 'folder', name }))
  const sorted = [...sortByName(made), ...sortByName(all)]
  return [
    ...sorted.filter(({ name }) => !isLate(name)),
    ...sorted.filter(({ name }) => isLate(name)),
    { kind: 'file', name: COMPLETE, mode: 0o644, bytes: Buffer.alloc(0) },
  ]
}

const isLate = (name: string) => /^lib\/(modules|firmware)(\/|$)/.test(name)

/** Sorts by code unit, so that no locale changes the bytes of an archive. */
const sortByName = (entries: readonly Entry[]): readonly Entry[] =>
  entries.toSorted((a, b) => (a.name < b.name ? -1 : Number(a.name > b.name)))

/** `a` and `a/b` for `a/b/c`. */
function listParents(name: string): readonly string[] {
  const steps = name.split('/').slice(0, -1)
  return steps.map((_, at) => steps.slice(0, at + 1).join('/'))
}
