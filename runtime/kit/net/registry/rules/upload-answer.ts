/** Parses what a registry answers to an upload: where it goes on, how much has arrived, and why not. */
import { parseJson } from '#kit/foundation/json-reader.ts'
import { printable } from '#kit/foundation/printable.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { isRecord } from '#kit/foundation/shape.ts'

/**
 * It may lie elsewhere, but never in plain text where the registry itself speaks TLS. The refusal
 * says in words what is wrong.
 */
export function parseUploadUrl(from: string, location: string | undefined): Result<string, string> {
  const next = location === undefined ? null : URL.parse(location, from)
  if (next === null) return refuse('its answer does not say where the upload goes on')
  if (next.protocol !== 'https:' && next.protocol !== 'http:') {
    return refuse(`it wants the upload at ${next.protocol}//, which is neither http nor https`)
  }
  if (next.protocol === 'http:' && from.startsWith('https:')) {
    return refuse('it wants the upload over plain http, though it speaks https itself')
  }
  next.username = ''
  next.password = ''
  next.hash = ''
  return accept(next.href)
}

export function completionUrl(upload: string, digest: string): string {
  const url = new URL(upload)
  url.searchParams.set('digest', digest)
  return url.href
}

/**
 * Of `0-499`, the number of bytes that have arrived; null: it says nothing. `0-0` means none, as
 * the widespread registry has it: chunks are never one byte long.
 */
export function parseArrived(range: string | undefined): number | null {
  const last = /^(?:bytes=)?0-(\d{1,15})$/.exec(range?.trim() ?? '')?.[1]
  if (last === undefined) return null
  return last === '0' ? 0 : Number(last) + 1
}

const MAX_CHUNK_BYTES = 64 * 1024 * 1024

/** Decides the bytes of a chunk: `ours`, or more where the registry wants more, up to 64 MiB. */
export function decideChunkBytes(ours: number, least: string | undefined): number {
  const wanted = /^\d{1,12}$/.test(least ?? '') ? Number(least) : 0
  return Math.min(MAX_CHUNK_BYTES, Math.max(ours, wanted))
}

/** The bytes of an answer that are read for its reason. */
export const MAX_REASON_BYTES = 64 * 1024
const MAX_CHARACTERS = 300

interface RegistryError {
  /** `DENIED`, `BLOB_UNKNOWN`…; empty: it says none. */
  readonly code: string
  readonly message: string
}

/** Parses the first error of an answer; both texts are empty where there is none. */
export function parseRegistryError(text: string): RegistryError {
  const document = parseJson(text)
  const errors = isRecord(document) ? document['errors'] : undefined
  const first: unknown = Array.isArray(errors) ? errors[0] : undefined
  if (!isRecord(first)) return { code: '', message: '' }
  return { code: wordsOf(first['code']), message: wordsOf(first['message']) }
}

/** Renders `HTTP 403: denied (DENIED)`; the status alone where the answer says nothing. */
export function renderRegistryError(status: number, text: string): string {
  const { code, message } = parseRegistryError(text)
  const words = [message, message === '' ? code : code && `(${code})`].filter(Boolean).join(' ')
  return words === '' ? `HTTP ${status}` : `HTTP ${status}: ${words}`
}

const wordsOf = (text: unknown): string =>
  typeof text === 'string' ? printable(text.trim().slice(0, MAX_CHARACTERS)) : ''
