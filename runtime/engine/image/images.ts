/** Lists and inspects images: the files of a folder, one file, or any source. */
import { constants, type Stats } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { IMAGE_FORMATS, type ImageFormat } from '#appliance/disk-images.ts'
import { Fault, renderError, isMissing } from '#kit/foundation/fault.ts'
import { isBareFileName } from '#kit/foundation/file-name.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { isBelow, makeFolder, removeName } from '#kit/host/folders.ts'
import { clearUploads } from '#kit/host/partial-files.ts'
import type { Shell } from '#kit/host/shell.ts'
import { describeType, type Sent } from '#kit/net/rules/http-range.ts'
import { describeRaw, findForeign, MARK_BYTES, notAnImage } from './rules/raw-image.ts'
import { listImages } from './image-folder.ts'
import { MEASURE_HEAD_BYTES, measureImage } from './formats.ts'
import { checkContent, detectFormat, FORMATS, isStoredRaw, isTarballName } from './rules/format.ts'
import { describeFrames, type FrameMap } from './rules/frame-map.ts'
import { planInspection, renderMismatch } from './rules/image-head.ts'
import {
  exactBytes,
  type ImageFacts,
  type ImageInfo,
  type ImageRow,
  type RangeStep,
  UNKNOWN_SIZE,
  type VirtualSize,
} from './rules/image.ts'
import type { Source } from './sources/source.ts'

export type Images = ReturnType<typeof createImages>

export const createImages = ({ shell }: { readonly shell: Shell }) => ({
  list: listImages,
  /** `format`: where the name does not show it. */
  inspect: (path: string, format: ImageFormat | null = null) => inspectImage(path, shell, format),
  probe: probeImage,
})

/** A Fault only where the file is missing or cannot be read. */
async function inspectImage(
  path: string,
  shell: Shell,
  recognised: ImageFormat | null,
): Promise<ImageInfo> {
  const file = await attempt(path, stat(path))
  const format = file.isFile() ? (detectFormat(path) ?? recognised) : null
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

function renderStranger(path: string, file: Stats): string {
  if (file.isDirectory()) return `${path} is a folder, not an image`
  if (!file.isFile()) return `${path} is not a regular file`
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
    if (!(thrown instanceof Fault) || thrown.code !== 'tool-missing') throw thrown
    return { detail_error: [thrown.message, thrown.hint].filter(Boolean).join('. ') }
  }
}

/**
 * Reads the first bytes and what the size requires; nothing without random access. Rejects with a
 * Fault: `plan-refused` for other content or none, `image-broken` where damaged or cut off.
 */
export async function probeImage(
  source: ProbedSource,
  format: ImageFormat | null,
  { anyContent = false }: ProbeOptions = {},
): Promise<ImageFacts> {
  const { name, path, url, sizeBytes, readAt, sent } = source
  const facts = { name, path, url, format, sizeBytes, ...saidOf(sent, anyContent) }
  if (sizeBytes === 0) throw new Fault('plan-refused', `${name} is empty`)
  if (!anyContent) checkSent(source)
  if (format === null || readAt === null) return { ...facts, virtual: UNKNOWN_SIZE }
  const file = { ...source, readAt, isNear: path !== null }
  const found = await examine(file, format, { anyContent })
  if (!found.ok) throw new Fault(found.refusal.code, found.refusal.message, found.refusal)
  const { virtual, notes, isCut } = found.value
  if (exactBytes(virtual) === 0) throw new Fault('plan-refused', `${name} holds an empty image`)
  return { ...facts, virtual, ...foundOf(notes, isCut) }
}

const foundOf = (notes: readonly string[], isCut = false) => ({
  ...(notes.length === 0 ? {} : { notes }),
  ...(isCut ? { isCut } : {}),
})

const saidOf = (sent: Sent | undefined, anyContent: boolean) => ({
  ...(anyContent ? { anyContent } : {}),
  ...(sent === undefined ? {} : { sent }),
})

/** Throws a Fault `plan-refused` where a server announces a web page. */
export function checkSent({ name, sent }: Pick<ProbedSource, 'name' | 'sent'>): void {
  const page = describeType(sent)
  if (page !== null) throw notAnImage(name, page)
}

interface ProbeOptions {
  /** Somebody said that it is written whatever it looks like. */
  readonly anyContent?: boolean | undefined
}

type ProbedSource = Pick<Source, 'name' | 'path' | 'url' | 'sizeBytes' | 'readAt' | 'sent'> & {
  readonly fileName?: string
}

interface Readable {
  readonly name: string
  readonly sizeBytes: number | null
  readonly readAt: (into: Buffer, offset: number) => Promise<number>
  /** A read costs next to nothing. */
  readonly isNear: boolean
  readonly fileName?: string
  readonly sent?: Sent | undefined
}

type Unfit = Pick<Fault, 'code' | 'message' | 'hint'>

interface Examined {
  readonly virtual: VirtualSize
  /** Null: no frames that can be entered. */
  readonly map: FrameMap | null
  readonly notes: readonly string[]
  readonly isCut?: boolean
}

async function examine(
  file: Readable,
  format: ImageFormat,
  { anyContent = false }: ProbeOptions = {},
): Promise<Result<Examined, Unfit>> {
  const windows = createWindows(file)
  const wanted = isStoredRaw(format) ? MARK_BYTES : MEASURE_HEAD_BYTES
  const head = await windows.read(0, Math.min(wanted, file.sizeBytes ?? Infinity))
  const begun = { format, head, windows }
  return await (isStoredRaw(format)
    ? examineRaw(file, begun, anyContent)
    : examineStored(file, begun))
}

interface Begun {
  readonly format: ImageFormat
  readonly head: Buffer
  readonly windows: Windows
}

async function examineStored(file: Readable, begun: Begun): Promise<Result<Examined, Unfit>> {
  const content = checkContent(begun.format, begun.head)
  if (!content.ok) return refuse(mismatch(file, content.refusal))
  const hasFrames = FORMATS[begun.format].entered === 'at-frames'
  const map = hasFrames ? await tryFrameMap(file, begun.windows) : accept(null)
  if (!map.ok) return map
  // An index covers the whole file: nothing to walk; far away a table must do.
  if (map.value !== null && (map.value.indexSha256 !== null || !file.isNear)) {
    return accept({ virtual: { kind: 'exact', bytes: map.value.bytes }, map: map.value, notes: [] })
  }
  const found = await measure(file, begun)
  if (!found.ok) return found
  const { virtual, notes } = found.value
  return accept({ virtual: decideSize(virtual, map.value), map: map.value, notes })
}

async function measure(
  { name, sizeBytes: fileBytes, isNear }: Readable,
  { format, head, windows }: Begun,
): Promise<Result<Pick<Examined, 'virtual' | 'notes'>, Unfit>> {
  const found = await follow(await measureImage(format, { head, fileBytes, isNear }), windows)
  if (found.ok) return found
  return refuse({ code: 'image-broken', message: `${name}: ${found.refusal}`, hint: undefined })
}

/** A table knows the size of frames that do not tell it. */
const decideSize = (virtual: VirtualSize, map: FrameMap | null): VirtualSize =>
  virtual.kind === 'exact' || map === null ? virtual : { kind: 'exact', bytes: map.bytes }

const mismatch = (file: Readable, refusal: Parameters<typeof renderMismatch>[1]): Unfit => ({
  code: 'plan-refused',
  message: renderMismatch(file, refusal),
  hint: undefined,
})

async function examineRaw(
  file: Readable,
  begun: Begun,
  anyContent: boolean,
): Promise<Result<Examined, Unfit>> {
  const { format, head } = begun
  const content = checkContent(format, head)
  if (!content.ok && !anyContent) return refuse(mismatch(file, content.refusal))
  const foreign = findForeign(file, head)
  if (foreign !== null && !anyContent) return refuse(foreign)
  const found = await measure(file, begun)
  if (!found.ok) return found
  const { virtual } = found.value
  return accept({ virtual, map: null, ...describeRaw(head, file.sizeBytes) })
}

async function tryFrameMap(
  { name, sizeBytes }: Readable,
  windows: Windows,
): Promise<Result<FrameMap | null, Unfit>> {
  const readAt = async (into: Buffer, at: number) =>
    (await windows.read(at, into.length)).copy(into)
  const { readFrameMap } = await import('./zstd-decoder.ts')
  try {
    return accept(await readFrameMap({ name, sizeBytes, readAt }))
  } catch (thrown) {
    if (!(thrown instanceof Fault) || thrown.code !== 'image-broken') throw thrown
    return refuse(thrown)
  }
}

async function follow(
  first: RangeStep,
  windows: Windows,
): Promise<Result<Pick<Examined, 'virtual' | 'notes'>, string>> {
  let step = first
  while (step.kind === 'read') {
    if (windows.isSpent()) return accept({ virtual: step.stopped, notes: [] })
    step = step.take(await windows.read(step.at, step.length))
  }
  if (step.kind === 'refused') return refuse(step.refusal)
  return accept({ virtual: step.virtual, notes: step.note === undefined ? [] : [step.note] })
}

const attempt = <Value>(path: string, work: Promise<Value>): Promise<Value> =>
  work.catch((cause: unknown) => {
    if (isMissing(cause)) throw new Fault('input-missing', `image not found: ${path}`, { cause })
    const message = `image cannot be read: ${path} (${renderError(cause)})`
    throw new Fault('input-invalid', message, { cause })
  })

// Reads a file here and there in windows, so that questions about neighbouring bytes cost one read.

interface WindowedFile {
  readonly name: string
  readonly sizeBytes: number | null
  readonly readAt: (into: Buffer, offset: number) => Promise<number>
  /** A read costs next to nothing. */
  readonly isNear: boolean
}

type Windows = ReturnType<typeof createWindows>

/** Large where reads are cheap and cached; few and small where each costs a round trip. */
const NEAR = { windowBytes: 1024 * 1024, maxReads: 65_536 }
const FAR = { windowBytes: 64 * 1024, maxReads: 8 }

/** Reads a little more than asked for, as the next question is often about the bytes beside. */
function createWindows({ name, sizeBytes, readAt, isNear }: WindowedFile) {
  const { windowBytes, maxReads } = isNear ? NEAR : FAR
  const end = sizeBytes ?? Infinity
  const scratch = Buffer.allocUnsafe(windowBytes)
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
    isSpent: () => reads >= maxReads,
    /** At least `length` bytes, and all at hand after them; valid until the next. */
    async read(at: number, length: number): Promise<Buffer> {
      const hits = [held.first, held.latest].map((window) => bytesAt(window, at))
      const hit = hits.find((bytes) => bytes.length >= length)
      if (hit !== undefined) return hit
      held.latest = await readWindow(at, length)
      // A copy, as later windows reuse the memory.
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

export type ImageShelf = ReturnType<typeof createImageShelf>

const KEPT_MS = 1000

export function createImageShelf(given: string, now: () => Date) {
  const root = resolve(given)
  let last: { readonly at: number; readonly rows: Promise<readonly ImageRow[]> } | null = null
  return {
    /** Absolute. */
    root,
    /** Makes a missing folder, and clears uploads that were cut off. */
    async open() {
      await makeFolder(root)
      await clearUploads(root)
    },
    list(): Promise<readonly ImageRow[]> {
      const at = now().getTime()
      if (last === null || Math.abs(at - last.at) >= KEPT_MS) {
        last = { at, rows: listServed(root) }
        // A failed list is not kept.
        last.rows.catch(() => {
          last = null
        })
      }
      return last.rows
    },
    /** No error where nothing has this name. Rejects with Node's error. */
    async remove(name: string): Promise<void> {
      if (!isBareFileName(name)) return
      await removeName(join(root, name))
      last = null
    },
    forget() {
      last = null
    },
  }
}

async function listServed(root: string): Promise<readonly ImageRow[]> {
  const rows = await listImages(root)
  // No link leads out of the folder.
  const isServed = async ({ name, path }: ImageRow) =>
    isBareFileName(name) && (await isBelow(path, [root]).catch(() => false))
  const served = await Promise.all(rows.map(isServed))
  return rows.filter((_, at) => served[at])
}
