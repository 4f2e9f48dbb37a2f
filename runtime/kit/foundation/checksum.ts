/** Parses lists of SHA-256 digests as `sha256sum` and other systems write them, and finds the entry of one file. */
import { accept, refuse, type Result } from './result.ts'

type Sha256Refusal = 'not-listed' | 'not-a-checksum-list'

const DIGEST = /^[0-9a-f]{64}$/i
/** Digest, a blank, a blank or `*`, the name; some tools write one blank only, or tabs. */
const ENTRY = /^([0-9a-f]{64})(?: [ *]|[ \t]+\*?)(.+)$/i
/** The form that names its algorithm: `SHA256 (name) = digest`. */
const TAGGED = /^SHA256 \((.+)\) = ([0-9a-f]{64})$/i

/**
 * Finds the digest (lower case) that a checksum list holds for a file name; folders in the list's
 * names do not count. A list that is nothing but one bare digest is for whatever file it lies
 * beside. Two different digests for one name are refused as `not-listed`.
 */
export function parseSha256For(text: string, fileName: string): Result<string, Sha256Refusal> {
  const lines = text
    .replace(/^\ufeff/, '')
    .split(/\r?\n/)
    .filter((line) => line.trim() !== '' && !line.startsWith('#'))
  const [only = ''] = lines
  if (lines.length === 1 && DIGEST.test(only.trim())) return accept(only.trim().toLowerCase())
  const entries = lines.flatMap(parseEntry)
  if (entries.length === 0) return refuse('not-a-checksum-list')
  const hits = new Set(entries.flatMap(({ name, digest }) => (name === fileName ? [digest] : [])))
  const [digest] = hits
  return digest !== undefined && hits.size === 1 ? accept(digest) : refuse('not-listed')
}

/** In the encoding that its first bytes name, UTF-8 where they name none. */
export function decodeList(bytes: Uint8Array): string {
  const [first, second] = bytes
  const isLittle = first === 0xff && second === 0xfe
  const isBig = first === 0xfe && second === 0xff
  return new TextDecoder(isLittle ? 'utf-16le' : isBig ? 'utf-16be' : 'utf-8').decode(bytes)
}

function parseEntry(line: string): readonly { readonly name: string; readonly digest: string }[] {
  const [, digest, name] = ENTRY.exec(line) ?? []
  const [, taggedName, taggedDigest] = TAGGED.exec(line) ?? []
  const found = name ?? taggedName
  const value = digest ?? taggedDigest
  if (found === undefined || value === undefined) return []
  return [{ name: found.slice(found.lastIndexOf('/') + 1), digest: value.toLowerCase() }]
}
