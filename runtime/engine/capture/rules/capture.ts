/** Decides whether a disk may be captured, and says what a capture reads and writes. */
import {
  isSameDisk,
  renderMountPoint,
  renderUse,
  type DiskIdentity,
  type TargetDevice,
  type TargetFacts,
} from '#engine/disk/rules/disk.ts'
import { MAX_IMAGE_BYTES } from '#engine/image/rules/frame-map.ts'
import { decodePart } from '#kit/net/rules/image-location.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

/** Fast enough for the disk's speed. */
export const CAPTURE_LEVEL = 3

const WHOLE_TYPES = ['disk', 'loop', 'mpath']

/** Refused with all reasons, as clauses. `chosen` null: nobody has chosen a disk by looking. */
export function decideSource(
  { path, exists, device }: TargetFacts,
  chosen: DiskIdentity | null,
  maxBytes = MAX_IMAGE_BYTES,
): Result<TargetDevice, readonly string[]> {
  if (!exists) return refuse([`source does not exist: ${path}`])
  if (device === null) return refuse([`source is not a block device: ${path}`])
  const { uses, type, identity } = device
  const points = uses.flatMap((use) => (use.kind === 'mounted' ? [renderMountPoint(use)] : []))
  const users = uses.flatMap((use) => (use.kind === 'mounted' ? [] : [renderUse(use)]))
  const isOther = chosen !== null && !isSameDisk(chosen, identity)
  const checks: readonly (readonly [boolean, string])[] = [
    [isOther, `${path} is another disk now than the one that was chosen`],
    [points.length > 0, `source has mounted partitions: ${points.join(', ')}`],
    [users.length > 0, `source is in use: ${users.join(', ')}`],
    [!WHOLE_TYPES.includes(type), `source is not a whole disk: ${path} is of type ${type}`],
    [identity.sizeBytes === 0, `source has no medium or no size: ${path}`],
    [identity.sizeBytes > maxBytes, `source is larger than an image can be: 4 TiB`],
  ]
  const reasons = checks.flatMap(([hit, reason]) => (hit ? [reason] : []))
  return reasons.length === 0 ? accept(device) : refuse(reasons)
}

/** Hashing so many zeros takes minutes. */
const MAX_HASHED_FREE_BYTES = 256 * 2 ** 30

/** Zeros are hashed though not read. Each frame has a digest in any case. */
export const decideHashing = (sizeBytes: number, usedBytes: number): boolean =>
  sizeBytes - usedBytes <= MAX_HASHED_FREE_BYTES

export interface CapturedPart {
  /** From 1; 0: a disk without partitions. */
  readonly number: number
  /** As blkid names it: `ext4`; null: unknown. */
  readonly type: string | null
  readonly bytes: number
  readonly usedBytes: number
  /** Why all of it is read; null: only used blocks are. */
  readonly whole: string | null
}

/** zstd's best compression of a system's files: less room cannot be enough. */
const MIN_SHARE = 1 / 4

type CaptureRoom = 'enough' | 'doubtful' | 'too-little'

/** Parts that are read whole may be mostly zeros: they never prove that there is too little. */
export function decideRoom(
  parts: readonly Pick<CapturedPart, 'usedBytes' | 'whole'>[],
  usedBytes: number,
  freeBytes: number,
): CaptureRoom {
  if (freeBytes >= usedBytes) return 'enough'
  const filled = parts.reduce((sum, part) => sum + (part.whole === null ? part.usedBytes : 0), 0)
  return freeBytes >= filled * MIN_SHARE ? 'doubtful' : 'too-little'
}

interface LookedAt extends Pick<CapturedPart, 'type'> {
  /** Null: nobody looked for them. */
  readonly files: readonly { readonly path: string }[] | null
}

export type IdentityFiles =
  | { readonly kind: 'absent' }
  | { readonly kind: 'found'; readonly paths: readonly string[] }
  /** Nobody could look everywhere. */
  | { readonly kind: 'possible' }

export function decideIdentity(parts: readonly LookedAt[]): IdentityFiles {
  const paths = parts.flatMap(({ files }) => (files ?? []).map(({ path }) => path))
  if (paths.length > 0) return { kind: 'found', paths }
  const isKnown = ({ type, files }: LookedAt) =>
    files !== null || (type !== null && /^(vfat|swap)$/.test(type))
  return { kind: parts.every(isKnown) ? 'absent' : 'possible' }
}

/** Null where the image surely does not make another machine look like this one. */
export function warnOfIdentity(parts: readonly LookedAt[], generalize: boolean): string | null {
  const identity = decideIdentity(parts)
  if (generalize || identity.kind === 'absent') return null
  return identity.kind === 'found'
    ? `the image holds this machine's identity: ${identity.paths.join(', ')} (--generalize clears them in the image)`
    : 'the image may hold the identity of this machine: SSH host keys, machine-id, random seed, leases'
}

export function describeOrigin(
  { disk, parts }: { readonly disk: TargetDevice; readonly parts: readonly LookedAt[] },
  generalize: boolean,
) {
  const { node: path, model, identity } = disk
  const { serial, sizeBytes: size_bytes } = identity
  const source = { disk: { path, model, serial, size_bytes }, generalized: generalize }
  return { source, warnings: [warnOfIdentity(parts, generalize) ?? []].flat() }
}

interface UploadAddress {
  readonly base: string
  readonly name: string
}

/** `http://cache:8081/captures/NAME`; null: no URL. */
export function parseUploadAddress(text: string): UploadAddress | null {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) return null
  const { origin, pathname } = new URL(text)
  const at = pathname.lastIndexOf('/')
  const name = pathname.slice(at + 1)
  // The cache reports a name that cannot be decoded.
  return { base: `${origin}${pathname.slice(0, at)}`, name: decodePart(name) ?? name }
}

export type CaptureDestination =
  | { readonly kind: 'file'; readonly path: string }
  | {
      readonly kind: 'upload'
      readonly base: string
      readonly name: string
      /** Null: not typed yet. */
      readonly token: string | null
    }

export type CaptureOutcome =
  | {
      readonly kind: 'done'
      readonly storedBytes: number
      readonly imageBytes: number
      readonly sha256: string
      readonly seconds: number
      readonly identity: IdentityFiles
    }
  | {
      readonly kind: 'failed' | 'cancelled'
      readonly reason: string
      readonly hint: string | null
    }

export const renderDestination = (destination: CaptureDestination): string =>
  destination.kind === 'file'
    ? destination.path
    : `${destination.base}/${encodeURIComponent(destination.name)}`
