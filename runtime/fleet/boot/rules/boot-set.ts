/** The files of a live system: their names, which of them form a set, and which set is active. */
import { z } from 'zod'
import {
  checksumsOf,
  GRUB_FILES,
  ipxeFile,
  netbootStem,
  secureBootFiles,
  SHIM_FILES,
} from '#appliance/assets.ts'
import { ROOT_MANIFEST } from '#appliance/initrd.ts'

export const BOOT_ARCHS = ['x86_64', 'arm64'] as const
export type BootArch = (typeof BOOT_ARCHS)[number]

export const TRIO = ['vmlinuz', 'initrd', 'squashfs'] as const
/** `checksums`: the list that lies beside a trio. */
const SET_PARTS = [...TRIO, 'checksums'] as const

export interface CompleteSet {
  readonly arch: BootArch
  readonly version: string
}

export interface SetFile extends CompleteSet {
  readonly part: (typeof SET_PARTS)[number]
}

export type PerArch<Value> = Readonly<Record<BootArch, Value>>

export const perArch = <Value>(of: (arch: BootArch) => Value): PerArch<Value> => ({
  x86_64: of('x86_64'),
  arm64: of('arm64'),
})

/** The versions that scripts name, and the former ones, newest first. */
export interface BootRecord {
  readonly active: PerArch<string | null>
  readonly earlier: PerArch<readonly string[]>
}

const VERSION = /^[0-9][0-9A-Za-z.+~-]{0,63}$/

/** With its checksum list. */
export const listSetFiles = ({ arch, version }: CompleteSet): readonly string[] =>
  SET_PARTS.map((part) => setFileName({ arch, version, part }))

/** Null: another kind of file. */
export function parseSetFile(name: string): SetFile | null {
  for (const arch of BOOT_ARCHS) {
    for (const part of SET_PARTS) {
      const version = findVersion(name, (text) => setFileName({ arch, version: text, part }))
      if (version !== null) return { arch, version, part }
    }
  }
  return null
}

export function setFileName({ arch, version, part }: SetFile): string {
  const stem = netbootStem(arch, version)
  return part === 'checksums' ? checksumsOf(stem) : `${stem}.${part}`
}

const LOADERS = {
  ipxe: ipxeFile,
  shim: (arch: BootArch, version: string) => secureBootFiles(arch, version).shim,
  grub: (arch: BootArch, version: string) => secureBootFiles(arch, version).grub,
} as const
type LoaderKind = keyof typeof LOADERS

/** Null: not a release's boot loader. */
export function parseLoaderFile(
  name: string,
): (CompleteSet & { readonly kind: LoaderKind }) | null {
  for (const kind of ['ipxe', 'shim', 'grub'] as const) {
    for (const arch of BOOT_ARCHS) {
      const version = findVersion(name, (text) => LOADERS[kind](arch, text))
      if (version !== null) return { kind, arch, version }
    }
  }
  return null
}

/** The version for which `render` makes this name; null: none. */
function findVersion(name: string, render: (version: string) => string): string | null {
  const [head = '', tail = ''] = render('*').split('*')
  const version = name.slice(head.length, name.length - tail.length)
  return VERSION.test(version) && render(version) === name ? version : null
}

/** Names that DHCP servers give to firmware and shim loads, in every release. */
const ALIASES: Readonly<Record<string, { readonly kind: LoaderKind; readonly arch: BootArch }>> = {
  'ipxe.efi': { kind: 'ipxe', arch: 'x86_64' },
  'ipxe-x86_64.efi': { kind: 'ipxe', arch: 'x86_64' },
  'ipxe-arm64.efi': { kind: 'ipxe', arch: 'arm64' },
  ...Object.fromEntries(
    BOOT_ARCHS.flatMap((arch) => [
      [SHIM_FILES[arch], { kind: 'shim', arch } as const],
      [GRUB_FILES[arch], { kind: 'grub', arch } as const],
    ]),
  ),
}

/** The newest boot loader that the alias stands for; null: none. */
export function decideAlias(alias: string, names: readonly string[]): string | null {
  const meant = Object.hasOwn(ALIASES, alias) ? ALIASES[alias] : undefined
  const found = names.flatMap((name) => {
    const file = parseLoaderFile(name)
    return file !== null && file.kind === meant?.kind && file.arch === meant.arch
      ? [{ name, version: file.version }]
      : []
  })
  return found.toSorted(newestFirst)[0]?.name ?? null
}

/** Servers of one fleet give each other these files. */
export const isSharedName = (name: string): boolean =>
  parseSetFile(name) !== null || parseLoaderFile(name) !== null || Object.hasOwn(ALIASES, name)

/** The files given to machines: active sets, and boot loaders in use. */
export function listGiven(
  names: readonly string[],
  active: PerArch<string | null>,
): readonly string[] {
  const sets = BOOT_ARCHS.flatMap((arch) => {
    const version = active[arch]
    return version === null ? [] : listSetFiles({ arch, version })
  })
  const loaders = Object.keys(ALIASES).flatMap((alias) => [
    alias,
    decideAlias(alias, names) ?? alias,
  ])
  const given = new Set([...sets, ...loaders])
  return names.filter((name) => given.has(name))
}

/** Newest first. */
export const listComplete = (names: readonly string[]): readonly CompleteSet[] =>
  listTrios(names)
    .filter(({ missing }) => missing.length === 0)
    .map(({ arch, version }) => ({ arch, version }))

export interface IncompleteSet extends CompleteSet {
  readonly missing: readonly string[]
}

export const listIncomplete = (names: readonly string[]): readonly IncompleteSet[] =>
  listTrios(names).filter(({ missing }) => missing.length > 0)

function listTrios(names: readonly string[]): readonly IncompleteSet[] {
  const files = names.map(parseSetFile).filter((file) => file !== null)
  const parts = files.filter(({ part }) => part !== 'checksums')
  const trios = Map.groupBy(parts, ({ arch, version }) => `${arch} ${version}`)
  return [...trios.values()]
    .flatMap(([file]) => file ?? [])
    .map(({ arch, version }) => {
      const wanted = TRIO.map((part) => setFileName({ arch, version, part }))
      return { arch, version, missing: wanted.filter((name) => !names.includes(name)) }
    })
    .toSorted(newestFirst)
}

export interface ForeignSet extends CompleteSet {
  readonly reason: string
}

export const renderForeign = (initrd: string): string =>
  `${initrd} has no ${ROOT_MANIFEST}, so it is not a flasher live system. Machines could not find this server with it.`

/** The recorded version while it is complete, else the newest that was put there by hand. */
export function decideActive(
  arch: BootArch,
  record: BootRecord,
  complete: readonly CompleteSet[],
): string | null {
  const versions = complete.flatMap((set) => (set.arch === arch ? [set.version] : []))
  const recorded = record.active[arch]
  if (recorded !== null && versions.includes(recorded)) return recorded
  return versions[0] ?? null
}

/** Replaced versions come first among the earlier ones. */
export function activate(
  before: BootRecord,
  inForce: PerArch<string | null>,
  next: Partial<PerArch<string>>,
): BootRecord {
  const earlierOf = (arch: BootArch) => {
    const [was, known] = [inForce[arch], before.earlier[arch]]
    if (next[arch] === undefined) return known
    const all = was === null ? known : [was, ...known]
    return [...new Set(all)].filter((one) => one !== next[arch])
  }
  return { active: { ...before.active, ...next }, earlier: perArch(earlierOf) }
}

export function prune(
  record: BootRecord,
  most: number,
): { readonly record: BootRecord; readonly removed: readonly CompleteSet[] } {
  const removed = BOOT_ARCHS.flatMap((arch) =>
    record.earlier[arch]
      .slice(most)
      .flatMap((version) => (version === record.active[arch] ? [] : [{ arch, version }])),
  )
  const earlier = perArch((arch) => record.earlier[arch].slice(0, most))
  return { record: { ...record, earlier }, removed }
}

export const NO_RECORD: BootRecord = {
  active: perArch(() => null),
  earlier: perArch(() => []),
}

const Version = z.string().regex(VERSION)
const Versions = z.array(Version).max(1000)
const RecordSchema = z.object({
  active: z.object({ x86_64: Version.nullable(), arm64: Version.nullable() }),
  earlier: z.object({ x86_64: Versions, arm64: Versions }),
})

/** An unreadable record counts as none: the files say enough. */
export const parseBootRecord = (json: unknown): BootRecord =>
  RecordSchema.safeParse(json).data ?? NO_RECORD

/** Numbers by value, the rest as text; `1.2.0-rc1` before `1.2.0`. Below 0: `one` is older. */
export function compareVersions(one: string, two: string): number {
  const [[oneBase = '', onePre], [twoBase = '', twoPre]] = [splitPre(one), splitPre(two)]
  const bases = oneBase.localeCompare(twoBase, 'en', { numeric: true })
  if (bases !== 0) return bases
  if (onePre === undefined || twoPre === undefined) {
    return Number(onePre === undefined) - Number(twoPre === undefined)
  }
  return onePre.localeCompare(twoPre, 'en', { numeric: true })
}

function splitPre(version: string): readonly [string, string?] {
  const at = version.search(/[-~]/)
  return at < 0 ? [version] : [version.slice(0, at), version.slice(at + 1)]
}

type Versioned = Pick<CompleteSet, 'version'>
const newestFirst = (one: Versioned, two: Versioned) => compareVersions(two.version, one.version)

// Walks through the cpio archives ("newc") of an initrd by their names; the content is skipped.

export type NewcStep =
  | { readonly kind: 'more' }
  | { readonly kind: 'found' }
  /** Something else than an archive begins at this offset of the chunk. */
  | { readonly kind: 'rest'; readonly at: number }
  | { readonly kind: 'broken' }

interface NewcWalker {
  /** Push nothing after any other answer than `more`. */
  push(chunk: Uint8Array): NewcStep
  /** At least one archive was read, the last one to its end. */
  isAtEnd(): boolean
}

const HEADER_BYTES = 110
const MAGIC = /^07070[12][0-9a-f]{104}$/i
const SIZE_AT = 6 + 6 * 8
const NAME_SIZE_AT = 6 + 11 * 8
/** The kernel's limit for a path. */
const MAX_NAME_BYTES = 4096
const TRAILER = 'TRAILER!!!'
const MORE: NewcStep = { kind: 'more' }

/** `missing`: bytes still to collect, or to pass over (`skip`). */
type WalkState =
  | { readonly kind: 'between' }
  | { readonly kind: 'header' | 'name'; missing: number }
  | { readonly kind: 'skip'; missing: number; readonly next: 'header' | 'between' }

/** `wanted`: a path without a leading slash or dot. */
export function createNewcWalker(wanted: string): NewcWalker {
  let state: WalkState = { kind: 'between' }
  let archives = 0
  let collected: Uint8Array[] = []
  let [dataBytes, nameBytes] = [0, 0]

  function endHeader(text: string): NewcStep {
    if (!MAGIC.test(text)) return { kind: 'broken' }
    dataBytes = readField(text, SIZE_AT)
    nameBytes = readField(text, NAME_SIZE_AT)
    if (nameBytes === 0 || nameBytes > MAX_NAME_BYTES) return { kind: 'broken' }
    // Header and name together end at a multiple of 4.
    state = { kind: 'name', missing: padded(HEADER_BYTES + nameBytes) - HEADER_BYTES }
    return MORE
  }

  function endName(text: string): NewcStep {
    const name = text.slice(0, nameBytes - 1).replace(/^(?:\.?\/)+/, '')
    if (name === wanted) return { kind: 'found' }
    const isLast = name === TRAILER
    if (isLast) archives += 1
    state = { kind: 'skip', missing: padded(dataBytes), next: isLast ? 'between' : 'header' }
    return MORE
  }

  /** The number of bytes used, or the final step. */
  function advance(chunk: Uint8Array): number | NewcStep {
    if (state.kind === 'between') {
      const used = chunk.findIndex((byte) => byte !== 0)
      if (used < 0) return chunk.length
      if (chunk[used] !== ZERO_DIGIT) return { kind: 'rest', at: used }
      state = { kind: 'header', missing: HEADER_BYTES }
      return used
    }
    const bytes = Math.min(state.missing, chunk.length)
    state.missing -= bytes
    if (state.kind === 'skip') {
      if (state.missing === 0) state = begin(state.next)
      return bytes
    }
    collected.push(Uint8Array.from(chunk.subarray(0, bytes)))
    if (state.missing > 0) return bytes
    const text = Buffer.concat(collected).toString('latin1')
    collected = []
    const step = state.kind === 'header' ? endHeader(text) : endName(text)
    return step.kind === 'more' ? bytes : step
  }

  return {
    push(chunk) {
      let at = 0
      while (at < chunk.length || (state.kind === 'skip' && state.missing === 0)) {
        const step = advance(chunk.subarray(at))
        if (typeof step === 'number') at += step
        else return step.kind === 'rest' ? { kind: 'rest', at: at + step.at } : step
      }
      return MORE
    },
    isAtEnd: () => archives > 0 && state.kind === 'between',
  }
}

const ZERO_DIGIT = 0x30

const begin = (next: 'header' | 'between'): WalkState =>
  next === 'between' ? { kind: 'between' } : { kind: 'header', missing: HEADER_BYTES }

const readField = (text: string, at: number) => Number.parseInt(text.slice(at, at + 8), 16)

const padded = (bytes: number) => Math.ceil(bytes / 4) * 4
