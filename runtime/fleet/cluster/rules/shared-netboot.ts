/** The live systems of a fleet as a row that its servers share: what it says, and whether a server brings its own or takes what the row names. */
import { z } from 'zod'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { renderSize } from '#kit/foundation/size.ts'
import {
  BOOT_ARCHS,
  compareVersions,
  isSharedName,
  type BootArch,
  type CompleteSet,
  type PerArch,
} from '#fleet/boot/rules/boot-set.ts'

export interface SharedBootFile {
  readonly name: string
  readonly sizeBytes: number
  readonly sha256: string
}

export interface SharedNetboot {
  readonly versions: PerArch<string | null>
  /** Fetched or chosen: a newer upload does not replace it. */
  readonly isChosen: PerArch<boolean>
  readonly files: readonly SharedBootFile[]
}

export interface NetbootRow {
  readonly version: string
  readonly content: string
}

export interface LocalNetboot extends SharedNetboot {
  /** By name, more than the active set; without files of unknown digest. */
  readonly known: ReadonlyMap<string, SharedBootFile>
  readonly complete: readonly CompleteSet[]
  /** They differ from the checksum list beside them. */
  readonly damaged: readonly string[]
}

const MAX_FILES = 64
const MAX_CHARACTERS = 65_536
const MAX_FILE_BYTES = 2 ** 40

const VersionSchema = z.string().min(1).max(64).nullable()
const FileSchema = z.object({
  name: z.string().max(200).refine(isSharedName),
  sizeBytes: z.int().min(0).max(MAX_FILE_BYTES),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
})
const NetbootSchema = z.object({
  versions: z.object({ x86_64: VersionSchema, arm64: VersionSchema }),
  isChosen: z.object({ x86_64: z.boolean(), arm64: z.boolean() }),
  files: z.array(FileSchema).max(MAX_FILES),
})

/** Null: unknown to this release; nothing is taken from it. */
export function parseNetboot(content: string): SharedNetboot | null {
  if (content.length > MAX_CHARACTERS) return null
  return NetbootSchema.safeParse(parseJson(content)).data ?? null
}

export const renderContent = ({ versions, isChosen, files }: SharedNetboot): string =>
  JSON.stringify({
    versions: { x86_64: versions.x86_64, arm64: versions.arm64 },
    isChosen: { x86_64: isChosen.x86_64, arm64: isChosen.arm64 },
    files: files
      .toSorted((one, two) => (one.name < two.name ? -1 : 1))
      .map(({ name, sizeBytes, sha256 }) => ({ name, sizeBytes, sha256 })),
  })

export const listMissing = (
  { files }: SharedNetboot,
  { known }: Pick<LocalNetboot, 'known'>,
): readonly SharedBootFile[] =>
  files.filter(({ name, sha256 }) => known.get(name)?.sha256 !== sha256)

/** It has all that the row names, and boots it; it may have more. */
export const isWhole = (row: SharedNetboot, local: LocalNetboot): boolean =>
  listMissing(row, local).length === 0 &&
  BOOT_ARCHS.every((arch) => row.versions[arch] === null || isActive(arch, row, local))

const isActive = (arch: BootArch, row: SharedNetboot, local: LocalNetboot): boolean =>
  row.versions[arch] === local.versions[arch] && (local.isChosen[arch] || !row.isChosen[arch])

/** Also an unchosen version, if another one here would displace it. */
export function listChoices(
  row: SharedNetboot,
  local: LocalNetboot,
): Partial<Record<BootArch, string>> {
  const choices: Partial<Record<BootArch, string>> = {}
  for (const arch of BOOT_ARCHS) {
    const version = row.versions[arch]
    if (version === null) continue
    const isOther = local.isChosen[arch] && local.versions[arch] !== version
    const isNewer = local.complete.some(
      (set) => set.arch === arch && compareVersions(set.version, version) > 0,
    )
    if (row.isChosen[arch] || isOther || isNewer) choices[arch] = version
  }
  return choices
}

interface NetbootState {
  readonly leads: boolean
  /** The row's version that this server last had whole; null: none. */
  readonly noted: string | null
  readonly row: NetbootRow | null
  readonly local: LocalNetboot
  /** As of when this server began to lead, or last brought something; null: it does not lead. */
  readonly begun: LocalNetboot | null
}

/** `keep`: row and files are the same; `nothing`: nothing to do, or nothing possible. */
type NetbootDecision = 'nothing' | 'keep' | 'bring' | 'take'

/**
 * Only the leader brings what people fetched, uploaded or chose. A set lost or damaged here is
 * nobody's choice, and is taken from the others again.
 */
export function decideNetboot(state: NetbootState): NetbootDecision {
  const { leads, row, local } = state
  if (row === null) return leads && isFit(local) ? 'bring' : 'nothing'
  if (row.content === renderContent(local)) return 'keep'
  const wanted = parseNetboot(row.content)
  if (wanted === null) return 'nothing'
  if (leads && isChangedHere(state, row.version) && isMeant(wanted, state)) return 'bring'
  return isWhole(wanted, local) ? 'keep' : 'take'
}

const isChangedHere = ({ noted, begun, local }: NetbootState, version: string): boolean =>
  noted === version || (begun !== null && renderContent(begun) !== renderContent(local))

const isMeant = (wanted: SharedNetboot, { local, begun }: NetbootState): boolean =>
  isFit(local) && !isAnyLost(wanted, local, begun)

const isFit = ({ files, damaged }: LocalNetboot): boolean =>
  files.length > 0 && damaged.length === 0

const isAnyLost = (wanted: SharedNetboot, local: LocalNetboot, begun: LocalNetboot | null) =>
  BOOT_ARCHS.some((arch) => isLost(arch, wanted.versions[arch], local, begun ?? local))

/** The row's set is gone here, and the active one only stands in for it. */
function isLost(arch: BootArch, wanted: string | null, local: LocalNetboot, begun: LocalNetboot) {
  const active = local.versions[arch]
  if (wanted === null || wanted === active) return false
  const has = ({ complete }: LocalNetboot, version: string | null) =>
    complete.some((set) => set.arch === arch && set.version === version)
  // A set that was chosen, or put there since, was meant.
  return !local.isChosen[arch] && !has(local, wanted) && (active === null || has(begun, active))
}

export interface NetbootFact {
  readonly version: string
  readonly trouble: string
}

/** `1.4.0 (x86_64), 1.3.0 (arm64)`; empty: none. */
export const renderVersions = ({ versions }: Pick<SharedNetboot, 'versions'>): string =>
  BOOT_ARCHS.flatMap((arch) => (versions[arch] === null ? [] : `${versions[arch]} (${arch})`)).join(
    ', ',
  )

export function renderNetboot(netboot: SharedNetboot | null): string {
  if (netboot === null) return 'a newer release has written what it cannot read'
  const bytes = netboot.files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  const versions = renderVersions(netboot) || 'no live system'
  return `${versions}; ${netboot.files.length} files, ${renderSize(bytes)}`
}

type NetbootStanding = 'whole' | 'copying' | 'troubled'

export function standingOf({ version, trouble }: NetbootFact, row: NetbootRow): NetbootStanding {
  if (version === row.version) return 'whole'
  return trouble === '' ? 'copying' : 'troubled'
}
