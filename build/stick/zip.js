/** Reads `flasher.zip` in the browser: stored entries of a known list, and nothing else. */

/** A reason for a person, in a sentence. */
export class Refusal extends Error {}

const MAX_ENTRIES = 1000
const MAX_DIRECTORY_BYTES = 2 ** 20
/** The end record has 22 bytes, and a comment of at most 64 KiB after it. */
const END_BYTES = 22
const MAX_TAIL_BYTES = END_BYTES + 65_535
const ENCRYPTED_OR_STREAMED = 0x0009
/** Segments of a path that mean the same on every system, and lead nowhere else. */
const SEGMENT = /^[A-Za-z0-9_][A-Za-z0-9._+~-]*$/
const MAX_PATH_CHARACTERS = 200

export const bytesOf = async (blob) => new Uint8Array(await blob.arrayBuffer())
const viewOf = (bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)

const isSafePath = (path) =>
  path.length <= MAX_PATH_CHARACTERS &&
  path.split('/').every((segment) => SEGMENT.test(segment) && !segment.endsWith('.'))

/** Finds the last record of the archive: how many entries it has, and where their list lies. */
async function readEnd(zip) {
  const start = Math.max(0, zip.size - MAX_TAIL_BYTES)
  const tail = await bytesOf(zip.slice(start))
  const view = viewOf(tail)
  for (let at = tail.length - END_BYTES; at >= 0; at -= 1) {
    if (view.getUint32(at, true) !== 0x0605_4b50) continue
    const entries = view.getUint16(at + 10, true)
    const bytes = view.getUint32(at + 12, true)
    const offset = view.getUint32(at + 16, true)
    if (entries > MAX_ENTRIES || bytes > MAX_DIRECTORY_BYTES) {
      throw new Refusal(`${zip.name} lists more files than a stick has.`)
    }
    if (offset + bytes > start + at)
      throw new Refusal(`${zip.name} is damaged: its list is cut off.`)
    return { entries, bytes, offset }
  }
  throw new Refusal(`${zip.name} is not a zip archive, or it was not downloaded completely.`)
}

/** One line of the archive's list; `at` is where it begins. */
function readLine(zip, bytes, at) {
  const view = viewOf(bytes)
  if (at + 46 > bytes.length || view.getUint32(at, true) !== 0x0201_4b50) {
    throw new Refusal(`${zip.name} is damaged: its list of files cannot be read.`)
  }
  const [nameLength, extra, comment] = [28, 30, 32].map((field) => view.getUint16(at + field, true))
  const path = new TextDecoder().decode(bytes.subarray(at + 46, at + 46 + nameLength))
  const [packed, size, offset] = [20, 24, 42].map((field) => view.getUint32(at + field, true))
  const isPlain = (view.getUint16(at + 8, true) & ENCRYPTED_OR_STREAMED) === 0
  if (!isPlain || view.getUint16(at + 10, true) !== 0 || packed !== size) {
    throw new Refusal(
      `${zip.name} is packed in a way that flasher.zip never is. Download it again.`,
    )
  }
  if (!isSafePath(path)) {
    throw new Refusal(
      `${zip.name} has a file that would lie outside of the stick's folders: ${path}`,
    )
  }
  return { path, size, offset, next: at + 46 + nameLength + extra + comment }
}

/** Where the bytes of an entry lie: behind a header of its own, which must name the same file. */
async function locate(zip, { path, size, offset }, end) {
  const head = await bytesOf(zip.slice(offset, offset + 30))
  const view = viewOf(head)
  if (head.length < 30 || view.getUint32(0, true) !== 0x0403_4b50) {
    throw new Refusal(`${zip.name} is damaged at ${path}.`)
  }
  const [nameLength, extra] = [view.getUint16(26, true), view.getUint16(28, true)]
  const start = offset + 30 + nameLength + extra
  const name = new TextDecoder().decode(
    await bytesOf(zip.slice(offset + 30, offset + 30 + nameLength)),
  )
  if (name !== path || start + size > end) throw new Refusal(`${zip.name} is damaged at ${path}.`)
  return { path, start, end: start + size, offset }
}

/**
 * Lists the files of the archive with their bytes, as parts of the file that was picked.
 *
 * @throws {Refusal} It is no archive of stored files with plain names that lie side by side.
 */
async function readZip(zip) {
  const { entries, bytes, offset } = await readEnd(zip)
  const list = await bytesOf(zip.slice(offset, offset + bytes))
  const places = []
  for (let [count, at] = [0, 0]; count < entries; count += 1) {
    const { next, ...line } = readLine(zip, list, at)
    places.push(await locate(zip, line, offset))
    at = next
  }
  const names = new Set(places.map(({ path }) => path.toLowerCase()))
  if (names.size !== places.length) throw new Refusal(`${zip.name} has a file twice.`)
  const sorted = places.toSorted((a, b) => a.offset - b.offset)
  for (const [at, place] of sorted.entries()) {
    if (at > 0 && place.offset < sorted[at - 1].end) {
      throw new Refusal(`${zip.name} has files that overlap.`)
    }
  }
  return places.map(({ path, start, end }) => ({ path, blob: zip.slice(start, end) }))
}

const hexOf = (buffer) =>
  [...new Uint8Array(buffer)].map((byte) => byte.toString(16).padStart(2, '0')).join('')

/**
 * Compares the archive with the files of the release that this page belongs to: names, sizes, then
 * SHA-256. Nothing is written before all of it is right.
 *
 * @returns {Promise<{ path: string, blob: Blob }[]>} the files of the stick.
 * @throws {Refusal}
 */
export async function openRelease(zip, { version, files }, onFile) {
  const found = new Map((await readZip(zip)).map(({ path, blob }) => [path, blob]))
  const other = `${zip.name} is not the flasher.zip of version ${version}. Take page and archive of the same release.`
  for (const { path, bytes } of files) {
    if (found.get(path)?.size !== bytes) throw new Refusal(other)
  }
  if (found.size !== files.length) throw new Refusal(other)
  for (const { path, sha256 } of files) {
    await onFile(path)
    const digest = await crypto.subtle.digest('SHA-256', await found.get(path).arrayBuffer())
    if (hexOf(digest) !== sha256) {
      throw new Refusal(
        `${zip.name} is damaged: ${path} has the wrong checksum. Download it again.`,
      )
    }
  }
  return files.map(({ path }) => ({ path, blob: found.get(path) }))
}
