/** The step after a write: what it requires, writes into the image, and runs ("Provisioning"). */
import { printable } from '#kit/foundation/printable.ts'
import { renderSize } from '#kit/foundation/size.ts'
import { type FilledVolume, PHYSICAL_VOLUME } from '#engine/disk/rules/lsblk.ts'
import {
  hasDosSignature,
  hasHeader,
  isExtendedType,
  parseDosTable,
  parsePartitions,
  parseTable,
  type Partition,
  PROTECTIVE,
  readDosEntries,
} from '#engine/disk/rules/partition-tables.ts'
import {
  type EndContents,
  type EndPiece,
  FIRST_BYTES,
  locateBackup,
  locateEnds,
  planEnds,
  type Range,
  splitEnds,
} from '#engine/disk/rules/extents.ts'

/** Paths are absolute or relative to the caller's current folder. */
export type Provisioning =
  | { readonly mode: 'none' }
  | {
      readonly mode: 'cloud-init'
      readonly userData: string
      /** Null: generated, new for each call. */
      readonly metaData: string | null
    }
  | {
      readonly mode: 'cijoe'
      readonly workflow: string
      /** Null: generated. */
      readonly config: string | null
    }

/** A file that the caller must have, with what to call it. */
export interface ProvisioningInput {
  readonly what: string
  readonly path: string
}

export function listInputs(provisioning: Provisioning): readonly ProvisioningInput[] {
  switch (provisioning.mode) {
    case 'none':
      return []
    case 'cloud-init': {
      const { userData, metaData } = provisioning
      return [...named('user-data', userData), ...named('meta-data', metaData)]
    }
    case 'cijoe': {
      const { workflow, config } = provisioning
      return [...named('cijoe workflow', workflow), ...named('cijoe config', config)]
    }
  }
}

const named = (what: string, path: string | null): readonly ProvisioningInput[] =>
  path === null ? [] : [{ what, path }]

/** Programs that are needed to look into a flashed disk. */
const LOOKING = ['lsblk', 'blkid', 'mount', 'umount', 'nsenter', 'setsid', 'unshare'] as const

export const TOOLS: Readonly<Record<Provisioning['mode'], readonly string[]>> = {
  none: [],
  'cloud-init': LOOKING,
  // The spec's own case first: it is the one that people lack.
  cijoe: ['cijoe', ...LOOKING, 'setpriv'],
}

/** What makes a file system a cloud-init root; paths have no leading slash. */
export const CLOUD_INIT_MARK = 'etc/cloud'
/** cloud-init does not start at all where this exists. */
export const CLOUD_INIT_SWITCHED_OFF = 'etc/cloud/cloud-init.disabled'
export const SEED_FOLDER = 'var/lib/cloud/seed/nocloud-net'
/** Beside the seed and read before it: a complete seed that came with the image would hide ours. */
export const findFolderReadFirst = (seedFolder: string): string =>
  seedFolder.replace(/nocloud-net$/, 'nocloud')
export const SEED_FILES = ['user-data', 'meta-data'] as const

/** `id`: 12 hexadecimal digits, new for each flash: cloud-init runs once per instance. */
export const renderMetaData = (id: string): string =>
  `instance-id: flasher-${id}\nlocal-hostname: flasher-host\n`

/** cijoe does not start without a configuration. */
export const CIJOE_CONFIG = '[cijoe.workflow]\nfail_fast = true\n'

/** Returns the command that runs a workflow with a configuration; both are paths. */
export const cijoeArgv = (workflow: string, config: string): readonly string[] => [
  'cijoe',
  '--monitor',
  '-c',
  config,
  workflow,
]

/** What can never be a root file system, however large: swap, and what logical volumes lie on. */
const NEVER_ROOT = new Set(['swap', 'swsuspend', PHYSICAL_VOLUME])

/** The volume that a workflow gets: the largest, the first of equals; null where there is none. */
export function findLargest(volumes: readonly FilledVolume[]): FilledVolume | null {
  return volumes
    .filter(({ contents }) => !NEVER_ROOT.has(contents.type ?? ''))
    .reduce<FilledVolume | null>(
      (best, next) => (best !== null && best.sizeBytes >= next.sizeBytes ? best : next),
      null,
    )
}

/** One place that was looked at, and why it was not the one. */
export interface Examination {
  readonly node: string
  readonly type: string | null
  readonly sizeBytes: number
  readonly why: string
}

/** What was looked at, one indented line each; safe to print whatever the image said. */
export const renderExaminations = (examinations: readonly Examination[]): string =>
  examinations
    .map(
      ({ node, type, sizeBytes, why }) =>
        `\n  ${printable(node)} (${printable(type ?? 'no file system')}, ${renderSize(sizeBytes)}): ${printable(why)}`,
    )
    .join('')

/** Decides whether what `--provision` writes can be written before the disk can boot, from its table as it will be. */
interface EarlySeed {
  /** To be written before, as partitions reach into them: all but the sectors of the tables. */
  readonly early: readonly EndPiece[]
  /** Written when all the rest is on the medium, in this order. */
  readonly held: readonly EndPiece[]
  readonly partitions: readonly Partition[]
  /** Holds logical partitions; null: there is none. */
  readonly extended: Range | null
}

/**
 * Null where nothing can be mounted until the ends are written: there is no table, or none that is
 * read here as the kernel reads it, or a partition lies where the table is.
 */
export function planEarlySeed(
  disk: { readonly sizeBytes: number; readonly sectorBytes: number },
  ends: EndContents,
): EarlySeed | null {
  const { head } = ends
  const { sizeBytes, sectorBytes } = disk
  const listed = listPartitions(head, sectorBytes)
  if (listed === null) return null
  const { all, tableEnd } = listed
  const backup = locateBackup(sizeBytes, ends)
  const tailTo = Math.floor(backup / sectorBytes) * sectorBytes
  const isFree = ({ offset, bytes }: Range) => offset >= tableEnd && offset + bytes <= tailTo
  if (all.length === 0 || !all.every(isFree)) return null
  const { headBytes, tailStart } = locateEnds(sizeBytes)
  const begin = Math.min(...all.map(({ offset }) => offset))
  const end = Math.max(...all.map(({ offset, bytes }) => offset + bytes))
  const { early, held } = splitEnds(planEnds(sizeBytes, ends), {
    headFrom: Math.min(begin, headBytes),
    tailTo: end > tailStart ? tailTo : tailStart,
  })
  const [extended = null] = all.filter(isExtended)
  return { early, held, partitions: all.filter((one) => !isExtended(one)), extended }
}

const isExtended = ({ type }: Partition) => isExtendedType(Number(type))

interface Listed {
  readonly all: readonly Partition[]
  /** Where the first partition may begin. */
  readonly tableEnd: number
}

function listPartitions(head: Buffer, sectorBytes: number): Listed | null {
  if (!hasDosSignature(head)) return null
  const isGpt = hasHeader(head, sectorBytes)
  // The kernel reads a GPT only where the MBR before it says so.
  if (isGpt !== readDosEntries(head).some(({ type }) => type === PROTECTIVE)) return null
  if (!isGpt && parseDosTable(head) === null) return null
  const partitions = parsePartitions(head, sectorBytes)
  if (!partitions.ok) return null
  const firstFree = isGpt ? (parseTable(head, sectorBytes)?.firstFree ?? 0) : 1
  return { all: partitions.value, tableEnd: Math.max(FIRST_BYTES, firstFree * sectorBytes) }
}
