/** Plans a flash: from facts to a plan or the reasons against it, and the events while it runs. */
import type { DeltaState } from '#engine/inventory/rules/run.ts'
import { type Cases, decideCase } from '#kit/foundation/cases.ts'
import {
  isSameDisk,
  renderMountPoint,
  renderUse,
  type DiskIdentity,
  type TargetFacts,
} from '#engine/disk/rules/disk.ts'
import { IMAGE_FORMATS, type ImageFormat } from '#appliance/disk-images.ts'
import type { SourceShare } from '#engine/image/rules/frame-map.ts'
import { FORMATS, isTarballName } from '#engine/image/rules/format.ts'
import { leastBytes, type ImageFacts } from '#engine/image/rules/image.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { FirstBoot } from '#engine/first-boot/rules/seed.ts'
import type { Provisioning } from './provisioning.ts'
import { decideZeroMethod, type ZeroMethod } from './writing.ts'

/** Read back nothing, all that was written, or also the ranges that the device zeroed itself. */
export const VERIFY_LEVELS = ['none', 'data', 'all'] as const
type VerifyLevel = (typeof VERIFY_LEVELS)[number]

export interface FlashOptions {
  /** What is read back and compared: nothing, all that was written, or also what the device zeroed. */
  readonly verify: VerifyLevel
  /** The digest of the image as stored, 64 hexadecimal digits in lower case; null: not checked. */
  readonly sha256: string | null
  /** The target may be a partition instead of a whole disk. */
  readonly allowPartition: boolean
  /** Move the GPT's backup to the end of a disk that is larger than the image. */
  readonly fixGpt: boolean
  /** The digest of the index of an image in frames, in lower case; null or absent: not known. */
  readonly indexSha256?: string | null
  /** Write only what differs from the disk, where that can be known. */
  readonly delta?: boolean
  /** Have the image's last partition and its file system fill the disk; a GPT's backup moves with it. */
  readonly grow: boolean
}

/** What is done unless somebody asks for something else: all that was written is read back, and stays as it is. */
export const WHOLE_DISK: FlashOptions = {
  verify: 'data',
  sha256: null,
  allowPartition: false,
  fixGpt: false,
  grow: false,
}

/** One image for one disk or several: what the command, the wizard, the panes, a server or a program asks for. */
export interface FlashOrder {
  /** A path, `-`, an http(s) URL or an oras reference. */
  readonly image: string
  /** What the image is, whatever its name says; null: its name decides. */
  readonly format: ImageFormat | null
  /** Somebody named the format who did not have to, or said that it is an image: it is written whatever it looks like. */
  readonly anyContent?: boolean | undefined
  /** Bytes as stored, as a catalog says; absent or null: none does. */
  readonly sizeBytes?: number | null | undefined
  /** Further places of the same image: they serve frames where it has an index. */
  readonly mirrors?: readonly string[]
  /** Places of the same image that are asked before `image`, in this order; absent: there are none. */
  readonly sources?: readonly string[]
  /** Returns a new address for a signed one of these that has expired; null: there is none. */
  readonly renewSource?: ((location: string) => Promise<string | null>) | undefined
  readonly targets: readonly FlashTarget[]
  readonly options: FlashOptions
  /** The step after the write, on one disk alone; absent: none. */
  readonly provisioning?: Provisioning
  /** The configuration that is written before the disk can boot; absent or null: there is none. */
  readonly firstBoot?: FirstBoot | null
}

interface FlashTarget {
  /** A block device. */
  readonly path: string
  /** The disk that was there when a person chose it; absent or null: nobody looked. */
  readonly chosen?: DiskIdentity | null
}

/** Lists where the image is, in the order in which it is asked for; none comes twice. */
export const listSources = ({ image, sources = [] }: FlashOrder): readonly string[] => [
  ...new Set(sources.includes(image) ? sources : [...sources, image]),
]

/** A flash that may go ahead: everything the writer needs, nothing left to decide. */
export interface FlashPlan {
  readonly image: ImageFacts & { readonly format: ImageFormat }
  readonly target: {
    /** The path as the user named it; it is looked up again right before the first byte. */
    readonly path: string
    readonly node: string
    readonly identity: DiskIdentity
    readonly sectorBytes: number
    readonly allowPartition: boolean
  }
  readonly zeros: ZeroMethod
  readonly verify: VerifyLevel
  readonly sha256: string | null
  readonly fixGpt: boolean
  readonly indexSha256: string | null
  readonly delta: boolean
  readonly grow: boolean
}

/** What image and disk are, and what speaks against a flash. */
export interface FlashFindings {
  readonly image: ImageFacts
  /** Why the image's content cannot be written, in words; null where it can. */
  readonly imageProblem: string | null
  /** What to do about that; absent or null: nothing is known. */
  readonly imageHint?: string | null
  readonly target: TargetFacts
  /** The options with the digest that was found for the image. */
  readonly options: FlashOptions
  readonly refusals: readonly FlashRefusal[]
}

export type FlashRefusal =
  | { readonly why: 'unknown-format'; readonly image: string; readonly tarball: boolean }
  | { readonly why: 'image-empty'; readonly image: string }
  | { readonly why: 'target-missing'; readonly target: string }
  | { readonly why: 'not-a-block-device'; readonly target: string }
  | { readonly why: 'another-disk'; readonly target: string }
  | { readonly why: 'mounted'; readonly target: string; readonly at: readonly string[] }
  | { readonly why: 'in-use'; readonly target: string; readonly by: readonly string[] }
  | { readonly why: 'read-only'; readonly target: string }
  | { readonly why: 'not-a-whole-disk'; readonly target: string; readonly type: string }
  | {
      readonly why: 'image-too-big'
      readonly needs: number
      readonly has: number
      /** The size comes from the file's last four bytes, which mean nothing if the file is cut off. */
      readonly isDoubtful: boolean
    }
  | { readonly why: 'target-empty'; readonly target: string }
  | { readonly why: 'cannot-grow'; readonly reason: string }
  | { readonly why: 'no-first-boot'; readonly reason: string }
  | { readonly why: 'no-seed'; readonly reason: string }
  | { readonly why: 'other-sectors'; readonly reason: string }
  /** `as`: the other name of it, or of the disk that it is part of. */
  | { readonly why: 'same-disk'; readonly target: string; readonly as: string }

/** The names are the spec's closed list ("Flash lifecycle events"). */
export type FlashEvent =
  | { readonly event: 'started'; readonly total_bytes: number | null }
  | ({ readonly event: 'writing' } & WriteProgress)
  | { readonly event: 'synced' }
  | { readonly event: 'partprobed' }
  | { readonly event: 'provisioning'; readonly note: string }
  | { readonly event: 'done' }
  | { readonly event: 'failed'; readonly note: string }

/** The note of the `writing` event with which the growth begins, after everything was read back. */
export const GROWING = 'grow'
/** The note of the first `writing` event of a capture. */
export const CAPTURING = 'capture'

/** Where a write stands. Bytes read are the image's as stored, bytes written the disk's. */
export interface WriteProgress {
  readonly phase: 'write' | 'verify'
  /** The image's format or `verify`, on the first event of a phase; `grow` when the growth begins. */
  readonly note?: string
  readonly bytes_read: number
  /** In phase `verify`: bytes read back. */
  readonly bytes_written: number
  /** The part of bytes_written that lay on the disk already; only where it was compared. */
  readonly bytes_kept?: number
  /** On the first and the last event of a write that was to compare: what becomes of that. */
  readonly delta?: DeltaState
  /** What bytes_written counts up to; null where the image's size is not known before its end. */
  readonly total_bytes: number | null
  /** Bytes per second over the last moments. */
  readonly rate: number
  readonly eta_seconds: number | null
  /** What came from each source, where the image has several; absent: it has one. */
  readonly sources?: readonly SourceShare[]
  /** What the write waits for most; null where it waits for nothing, absent where nobody looked. */
  readonly bottleneck?: Bottleneck | null
}

/** What counts as a whole disk; a multipath device is the only safe way to the disk behind it. */
const WHOLE_TYPES = ['disk', 'loop', 'mpath']

/**
 * All reasons against this flash, in the order of the earlier line's table ("Validation").
 * `chosen`: the disk that was there when somebody chose it; null where nobody did.
 */
export function decideRefusals(
  image: ImageFacts,
  target: TargetFacts,
  options: Pick<FlashOptions, 'allowPartition'>,
  chosen: DiskIdentity | null = null,
): readonly FlashRefusal[] {
  return [...decideUnfit(image), ...decideTargetRefusals(image, target, options, chosen)]
}

/** `image` null: not known yet; `chosen`: the disk that a person saw, which it must be. */
export function decideTargetRefusals(
  image: Pick<ImageFacts, 'format' | 'virtual'> | null,
  target: TargetFacts,
  options: Pick<FlashOptions, 'allowPartition'>,
  chosen: DiskIdentity | null = null,
): readonly FlashRefusal[] {
  const { path } = target
  if (!target.exists) return [{ why: 'target-missing', target: path }]
  if (target.device === null) return [{ why: 'not-a-block-device', target: path }]
  const { uses, type, readonly, identity } = target.device
  const at = uses.flatMap((use) => (use.kind === 'mounted' ? [renderMountPoint(use)] : []))
  const by = uses.flatMap((use) => (use.kind === 'mounted' ? [] : [renderUse(use)]))
  const needs = image === null ? 0 : leastBytes(image.virtual)
  const has = identity.sizeBytes
  const isDoubtful = image !== null && isSizeDoubtful(image)
  const isWhole = WHOLE_TYPES.includes(type)
  const isOther = chosen !== null && !isSameDisk(chosen, identity)
  const checks: readonly (readonly [boolean, FlashRefusal])[] = [
    [isOther, { why: 'another-disk', target: path }],
    [at.length > 0, { why: 'mounted', target: path, at }],
    [by.length > 0, { why: 'in-use', target: path, by }],
    [readonly, { why: 'read-only', target: path }],
    [!isWhole && !options.allowPartition, { why: 'not-a-whole-disk', target: path, type }],
    [has === 0, { why: 'target-empty', target: path }],
    [has > 0 && needs > has, { why: 'image-too-big', needs, has, isDoubtful }],
  ]
  return checks.flatMap(([hit, refusal]) => (hit ? [refusal] : []))
}

const isSizeDoubtful = ({ format, virtual }: Pick<ImageFacts, 'format' | 'virtual'>): boolean =>
  format !== null && virtual.kind === 'at-least' && FORMATS[format].sizeWraps

/** `others`: the targets that were named before it. */
export function findSameDisk(
  { path, device }: TargetFacts,
  others: readonly TargetFacts[],
): FlashRefusal | null {
  if (device === null) return null
  const same = others.find(
    (other) =>
      other.device !== null &&
      (other.device.node === device.node ||
        isPartOf(device.node, other.device.node) ||
        isPartOf(other.device.node, device.node)),
  )
  return same === undefined ? null : { why: 'same-disk', target: path, as: same.path }
}

/** `/dev/sda1` of `/dev/sda`, `/dev/nvme0n1p2` of `/dev/nvme0n1`; a disk's name ends in a digit or not. */
function isPartOf(part: string, disk: string): boolean {
  if (!part.startsWith(disk)) return false
  const rest = part.slice(disk.length)
  return /\d$/.test(disk) ? /^p\d+$/.test(rest) : /^\d+$/.test(rest)
}

function decideUnfit({ name, format, virtual }: ImageFacts): readonly FlashRefusal[] {
  if (format === null) return [{ why: 'unknown-format', image: name, tarball: isTarballName(name) }]
  const isEmpty = virtual.kind === 'exact' && virtual.bytes === 0
  return isEmpty ? [{ why: 'image-empty', image: name }] : []
}

/** Lists what a person should know of the image of a plan that may go ahead. */
export const decideNotes = (image: ImageFacts): readonly string[] =>
  image.format === null ? [] : [...describeSize(image), ...(image.notes ?? [])]

function describeSize({ virtual }: ImageFacts): readonly string[] {
  if (virtual.kind === 'exact') return []
  return virtual.kind === 'unknown'
    ? ['image virtual size could not be determined; size-fits-target check skipped']
    : [`image virtual size is at least ${virtual.bytes} bytes; the writer stops at the disk's end`]
}

/** Facts to a plan, or every reason against it. */
export function planFlash(
  image: ImageFacts,
  target: TargetFacts,
  options: FlashOptions,
  chosen: DiskIdentity | null = null,
): Result<FlashPlan, readonly FlashRefusal[]> {
  const refusals = decideRefusals(image, target, options, chosen)
  const { format } = image
  const { device } = target
  if (refusals.length > 0 || format === null || device === null) return refuse(refusals)
  const { node, identity, sectorBytes } = device
  return accept({
    image: { ...image, format },
    target: {
      path: target.path,
      node,
      identity,
      sectorBytes,
      allowPartition: options.allowPartition,
    },
    zeros: decideZeroMethod(device.zeros),
    verify: options.verify,
    sha256: options.sha256,
    fixGpt: options.fixGpt,
    indexSha256: options.indexSha256 ?? null,
    delta: options.delta ?? false,
    grow: options.grow,
  })
}

/** What changed between the plan and the first byte; null when it is still the same idle disk. */
export function decideRace(plan: FlashPlan, now: TargetFacts): string | null {
  const { path, identity } = plan.target
  if (!now.exists) return `${path} was removed`
  if (now.device === null) return `${path} is no longer a block device`
  if (now.device.node !== plan.target.node) return `${path} now points to ${now.device.node}`
  if (!isSameDisk(identity, now.device.identity)) return `${path} is another disk now`
  if (now.device.sectorBytes !== plan.target.sectorBytes) return `${path} changed its sector size`
  if (now.device.readonly) return `${path} became read-only`
  const [use] = now.device.uses
  return use === undefined ? null : renderUse(use)
}

/** The formats are listed in the order of the specification. */
const SUPPORTED = [...IMAGE_FORMATS.slice(-2), ...IMAGE_FORMATS.slice(0, -2)].map(
  (format) => `.${format}`,
)

const MESSAGES: Cases<'why', FlashRefusal, string> = {
  'unknown-format': ({ image, tarball }) =>
    tarball
      ? `${image} is a tarball: extract first`
      : `image format not recognised: ${image} (supported: ${SUPPORTED.join(', ')}; for other names use --format)`,
  'image-empty': ({ image }) => `image is empty: ${image}`,
  'target-missing': ({ target }) => `target does not exist: ${target}`,
  'not-a-block-device': ({ target }) => `target is not a block device: ${target}`,
  'another-disk': ({ target }) => `${target} is another disk now than the one that was chosen`,
  mounted: ({ at }) => `target has mounted partitions: ${at.join(', ')}`,
  'in-use': ({ by }) => `target is in use: ${by.join(', ')}`,
  'read-only': ({ target }) => `target is read-only: ${target}`,
  'not-a-whole-disk': ({ target, type }) =>
    `target is not a whole disk: ${target} is of type ${type} (--allow-partition to write there anyway)`,
  'image-too-big': ({ needs, has, isDoubtful }) =>
    `image (${needs} bytes) is larger than target (${has} bytes)${isDoubtful ? CUT_OFF : ''}`,
  'target-empty': ({ target }) => `target has no medium or no size: ${target}`,
  'same-disk': ({ target, as }) => `target is given twice: ${target} is, or is part of, ${as}`,
  'cannot-grow': ({ reason }) => `the image cannot be grown: ${reason}`,
  'no-first-boot': ({ reason }) => `the first-boot template cannot be written: ${reason}`,
  'no-seed': ({ reason }) => `the user-data cannot be written: ${reason}`,
  'other-sectors': ({ reason }) => `the image does not fit the sectors of this disk: ${reason}`,
}

const CUT_OFF = '; its last bytes give this size, so it may be cut off; compare its checksum'

/** A refusal as one line, in the words of the earlier line ("Validation"). */
export const renderRefusal = (refusal: FlashRefusal): string => decideCase(MESSAGES, 'why', refusal)

/** In words, in the order of the checks; none: it may go ahead. */
export const renderReasons = ({
  imageProblem,
  refusals,
}: Pick<FlashFindings, 'imageProblem' | 'refusals'>): readonly string[] => [
  ...(imageProblem === null ? [] : [imageProblem]),
  ...refusals.map(renderRefusal),
]

const BOTTLENECKS = ['network', 'source', 'decoder', 'disk'] as const
/** `source`: the medium that a local image lies on. */
export type Bottleneck = (typeof BOTTLENECKS)[number]

/** Seconds out of the same span of time. */
export interface Waited {
  /** The time until the disk took what was there. */
  readonly disk: number
  /** The time until there was something to write; within it, until the source had given something. */
  readonly filling: number
  readonly source: number
}

export interface WaitedFor extends Waited {
  /** The length of that span. */
  readonly span: number
}

/** Less than this share of the time is no wait to speak of. */
const MIN_SHARE = 0.1

/** Null: nothing was waited for, so the machine itself is busy. */
export function decideBottleneck(
  { disk, filling, source, span }: WaitedFor,
  from: { readonly isRemote: boolean; readonly isDecoded: boolean },
): Bottleneck | null {
  if (Math.max(disk, filling) <= span * MIN_SHARE) return null
  if (disk >= filling) return 'disk'
  if (from.isDecoded && source < filling / 2) return 'decoder'
  return from.isRemote ? 'network' : 'source'
}
