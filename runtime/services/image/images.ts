/** Lists and inspects images: the files under an image root, one file, or any source. */
import { constants, type Stats } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { Fault, renderError } from '../../core/foundation/fault.ts'
import { exactBytes } from '../../core/flash/flash.ts'
import {
  checkContent,
  detectFormat,
  IMAGE_FORMATS,
  type ImageFacts,
  type ImageFormat,
  type ImageInfo,
  isTarballName,
  renderMismatch,
  type VirtualSize,
} from '../../core/image/image.ts'
import { describeFrames, type FrameMap } from '../../core/image/frame-map.ts'
import { planInspection } from '../../core/image/inspection.ts'
import { measureImage, MEASURE_HEAD_BYTES } from '../../core/image/measure.ts'
import { type RangeStep, UNKNOWN_SIZE } from '../../core/image/range.ts'
import { accept, refuse, type Result } from '../../core/foundation/result.ts'
import { isMissing } from '../../core/foundation/system-error.ts'
import { listImages } from './image-folder.ts'
import type { Shell } from '../host/shell.ts'
import type { Source } from './source.ts'

export type Images = ReturnType<typeof createImages>

export const createImages = ({ shell }: { readonly shell: Shell }) => ({
  list: listImages,
  inspect: (path: string) => inspectImage(path, shell),
  probe: probeImage,
})

/** One file as it is; a Fault only where it is missing or cannot be read. */
async function inspectImage(path: string, shell: Shell): Promise<ImageInfo> {
  const file = await attempt(path, stat(path))
  const format = file.isFile() ? detectFormat(path) : null
  const info = { path, format, size_bytes: file.size }
  if (format === null) {
    return { ...info, virtual_size_bytes: null, detail_error: renderStranger(path, file) }
  }
  const opening = open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  await using handle = await attempt(path, opening)
  const readAt = async (into: Buffer, offset: number) =>
    (await attempt(path, handle.read(into, 0, into.length, offset))).bytesRead
  const found = await examine({ name: path, sizeBytes: file.size, readAt, isNear: true }, format)
  if (!found.ok) return { ...info, virtual_size_bytes: null, detail_error: found.refusal.message }
  const { virtual, map } = found.value
  const frames = map === null ? {} : { frames: describeFrames(map) }
  return { ...info, ...sizeFields(virtual), ...frames, ...(await readDetail(format, path, shell)) }
}

/** What it is instead of an image. */
function renderStranger(path: string, file: Stats): string {
  if (file.isDirectory()) return `${path} is a folder, not an image`
  if (!file.isFile()) return `${path} is no regular file, so it is not an image`
  if (isTarballName(path)) return `${path} is a tarball, not an image: extract first`
  const known = IMAGE_FORMATS.toReversed().map((format) => `.${format}`)
  return `${path} is not an image: its name ends in none of ${known.join(', ')}`
}

const sizeFields = (virtual: VirtualSize) => ({
  virtual_size_bytes: exactBytes(virtual),
  ...(virtual.kind === 'at-least' ? { virtual_size_at_least_bytes: virtual.bytes } : {}),
})

async function readDetail(
  format: ImageFormat,
  path: string,
  shell: Shell,
): Promise<Pick<ImageInfo, 'detail' | 'detail_error'>> {
  const inspection = planInspection(format, path)
  if (inspection === null) return {}
  const [tool] = inspection.argv
  try {
    const { exitCode, stdout, stderr } = await shell.run(inspection.argv, { timeout: 60_000 })
    if (exitCode !== 0) return { detail_error: stderr.trim() || `${tool} ended with ${exitCode}` }
    const detail = inspection.parse(stdout)
    return detail.ok ? { detail: detail.value } : { detail_error: `${tool}: ${detail.refusal}` }
  } catch (thrown) {
    // The file was looked at without the tool; only its details are missing.
    if (!(thrown instanceof Fault) || thrown.code !== 'tool-missing') throw thrown
    return { detail_error: [thrown.message, thrown.hint].filter(Boolean).join('. ') }
  }
}

/**
 * What a flash must know. Reads the source's first bytes and what its size requires, nothing where the
 * source has no random access. Faults: `plan-refused` where the content is not what the format says
 * or nothing is in it, `image-broken` where it is damaged or cut off.
 */
async function probeImage(source: Source, format: ImageFormat | null): Promise<ImageFacts> {
  const { name, path, url, sizeBytes, readAt } = source
  const facts = { name, path, url, format, sizeBytes }
  if (sizeBytes === 0) throw new Fault('plan-refused', `${name} is empty`)
  if (format === null || readAt === null) return { ...facts, virtual: UNKNOWN_SIZE }
  const isNear = path !== null
  const found = await examine({ name, sizeBytes, readAt, isNear }, format)
  if (!found.ok) throw new Fault(found.refusal.code, found.refusal.message)
  const { virtual } = found.value
  if (exactBytes(virtual) === 0) throw new Fault('plan-refused', `${name} holds an empty image`)
  return { ...facts, virtual }
}

/** What reading here and there takes. */
interface Readable {
  readonly name: string
  readonly sizeBytes: number | null
  readonly readAt: (into: Buffer, offset: number) => Promise<number>
  /** Whether a read costs next to nothing. */
  readonly isNear: boolean
}

type Unfit = Pick<Fault, 'code' | 'message'>

interface Examined {
  readonly virtual: VirtualSize
  /** Null where the file has no frames that can be entered. */
  readonly map: FrameMap | null
}

/** Whether the content is what the format says, and how much it holds. */
async function examine(file: Readable, format: ImageFormat): Promise<Result<Examined, Unfit>> {
  const windows = createWindows(file)
  const head = await windows.read(0, Math.min(MEASURE_HEAD_BYTES, file.sizeBytes ?? Infinity))
  const content = checkContent(format, head)
  if (!content.ok) {
    return refuse({ code: 'plan-refused', message: renderMismatch(file.name, content.refusal) })
  }
  const map = format === 'img.zst' ? await tryFrameMap(file, windows) : accept(null)
  if (!map.ok) return map
  const { sizeBytes: fileBytes, isNear } = file
  // An index covers the whole file, so that there is nothing to walk; far away a table must do.
  if (map.value !== null && (map.value.indexSha256 !== null || !isNear)) {
    return accept({ virtual: { kind: 'exact', bytes: map.value.bytes }, map: map.value })
  }
  const found = await follow(measureImage(format, { head, fileBytes, isNear }), windows)
  return found.ok
    ? accept({ virtual: found.value, map: map.value })
    : refuse({ code: 'image-broken', message: `${file.name}: ${found.refusal}` })
}

async function tryFrameMap(
  { name, sizeBytes }: Readable,
  windows: Windows,
): Promise<Result<FrameMap | null, Unfit>> {
  const readAt = async (into: Buffer, at: number) =>
    (await windows.read(at, into.length)).copy(into)
  const { readFrameMap } = await import('./frame-maps.ts')
  try {
    return accept(await readFrameMap({ name, sizeBytes, readAt }))
  } catch (thrown) {
    if (!(thrown instanceof Fault) || thrown.code !== 'image-broken') throw thrown
    return refuse(thrown)
  }
}

/** Reads what each step asks for, as long as that is worth its time. */
async function follow(first: RangeStep, windows: Windows): Promise<Result<VirtualSize, string>> {
  let step = first
  while (step.kind === 'read') {
    if (windows.isSpent()) return accept(step.stopped)
    step = step.take(await windows.read(step.at, step.length))
  }
  return step.kind === 'known' ? accept(step.virtual) : refuse(step.refusal)
}

type Windows = ReturnType<typeof createWindows>

/**
 * Large ones where a read is cheap: walking a file's blocks in order costs no disk more than reading
 * it once, and leaves it in the page cache. Few and small ones where each costs a round trip.
 */
const NEAR = { windowBytes: 1024 * 1024, maxReads: 65_536 }
const FAR = { windowBytes: 64 * 1024, maxReads: 8 }

/** Reads a little more than was asked for, as the next question is often about the bytes beside. */
function createWindows({ name, sizeBytes, readAt, isNear }: Readable) {
  const { windowBytes, maxReads } = isNear ? NEAR : FAR
  const end = sizeBytes ?? Infinity
  const scratch = Buffer.allocUnsafe(windowBytes)
  /** The file's start, which is asked for again when its end was looked at, and the latest. */
  const held = { first: NO_WINDOW, latest: NO_WINDOW }
  let reads = 0

  async function readWindow(at: number, length: number): Promise<Window> {
    const from = Math.max(0, Math.min(at, end - windowBytes))
    const wanted = Math.min(Math.max(windowBytes, at + length - from), end - from)
    const into = wanted <= windowBytes ? scratch.subarray(0, wanted) : Buffer.allocUnsafe(wanted)
    reads += 1
    return { from, bytes: into.subarray(0, await readAt(into, from)) }
  }

  return {
    /** Whether no more reads should be made. */
    isSpent: () => reads >= maxReads,
    /** At least `length` bytes from `at` on, and all that is at hand after them; valid until the next. */
    async read(at: number, length: number): Promise<Buffer> {
      const hits = [held.first, held.latest].map((window) => bytesAt(window, at))
      const hit = hits.find((bytes) => bytes.length >= length)
      if (hit !== undefined) return hit
      held.latest = await readWindow(at, length)
      // A copy, as later windows take the memory again.
      if (reads === 1) held.first = held.latest = copyOf(held.latest)
      const got = bytesAt(held.latest, at)
      if (got.length >= length || sizeBytes === null) return got
      throw new Fault('source-broken', `${name} became shorter while it was read`)
    },
  }
}

interface Window {
  readonly from: number
  readonly bytes: Buffer
}

const NO_WINDOW: Window = { from: 0, bytes: Buffer.alloc(0) }

const copyOf = ({ from, bytes }: Window): Window => ({ from, bytes: Buffer.from(bytes) })

const bytesAt = ({ from, bytes }: Window, at: number) =>
  at < from ? bytes.subarray(0, 0) : bytes.subarray(at - from)

const attempt = <Value>(path: string, work: Promise<Value>): Promise<Value> =>
  work.catch((cause: unknown) => {
    if (isMissing(cause)) throw new Fault('input-missing', `image not found: ${path}`, { cause })
    const message = `image cannot be read: ${path} (${renderError(cause)})`
    throw new Fault('input-invalid', message, { cause })
  })
