/** Sends a file or a range of it: boot files, images, and what the cache holds. */
import type { H3Event } from 'h3'
import { decideFileAnswer } from '#kit/net/rules/http-range.ts'
import type { ServedFile } from '#kit/host/served-files.ts'
import { answer, type ByteStream, CONTENT_LENGTH } from './answers.ts'

/** Bytes of one read: fewer turns between disk and network than Node's 64 KiB. */
const READ_BYTES = 256 * 1024
/** Up to here a stream costs more than the bytes. */
const MAX_PIECE = 64 * 1024

/**
 * Answers with a file: HEAD, ranges and conditions as in RFC 9110. It takes the file, and closes
 * it. What goes wrong on the way ends the connection, so that nobody takes a part for the whole.
 * `bytes` says how many are sent; null: nobody knows yet.
 */
export async function answerFile(event: H3Event, name: string, file: ServedFile) {
  const { status, headers, from, end } = planPart(event, name, file)
  const length = end === null ? null : end - from
  if (length === 0 || event.req.method === 'HEAD') {
    await file.close()
    // A HEAD of a file whose length is not known yet must not name one.
    const hasBody = length !== null && status !== 304
    return { answer: answer(status, headers, hasBody ? '' : null), bytes: 0 }
  }
  const body =
    length !== null && length <= MAX_PIECE
      ? await readPiece(file, from, length)
      : readParts(file, from, end)
  return { answer: answer(status, headers, body), bytes: length }
}

/** `end` is exclusive; null: until the file says that there is no more. */
function planPart(event: H3Event, name: string, file: ServedFile) {
  const { sizeBytes, etag, lastModified } = file
  const headers = {
    // Saved, never shown: an uploaded page would run with the rights of ours.
    'content-type': 'application/octet-stream',
    'content-disposition': `attachment; filename*=UTF-8''${encodeURIComponent(name)}`,
    'cache-control': 'no-cache',
    ...file.headers,
    ...(lastModified !== null && { 'last-modified': lastModified }),
  }
  // While nobody knows what the bytes will be, a part of them could be of another file.
  if (sizeBytes === null || etag === null) {
    const length = sizeBytes === null ? {} : { [CONTENT_LENGTH]: String(sizeBytes) }
    return { status: 200, headers: { ...headers, ...length }, from: 0, end: sizeBytes }
  }
  const part = decideFileAnswer(readConditions(event), { sizeBytes, etag, lastModified })
  const described = { ...headers, etag, 'accept-ranges': 'bytes' }
  if (part.status === 304) return { status: 304, headers: described, from: 0, end: 0 }
  if (part.status === 416) {
    const range = { 'content-range': `bytes */${sizeBytes}` }
    return { status: 416, headers: { ...described, ...range }, from: 0, end: 0 }
  }
  const isWhole = part.status === 200
  const [from, end] = isWhole ? [0, sizeBytes] : [part.from, part.to + 1]
  const range = isWhole ? {} : { 'content-range': `bytes ${from}-${part.to}/${sizeBytes}` }
  const length = { [CONTENT_LENGTH]: String(end - from) }
  return { status: part.status, headers: { ...described, ...range, ...length }, from, end }
}

const readConditions = ({ req }: H3Event) => ({
  range: req.method === 'HEAD' ? null : req.headers.get('range'),
  ifRange: req.headers.get('if-range'),
  ifNoneMatch: req.headers.get('if-none-match'),
  ifModifiedSince: req.headers.get('if-modified-since'),
})

const ENDED_EARLY = 'the file became shorter while it was read'

async function readPiece(file: ServedFile, from: number, length: number) {
  const piece = Buffer.allocUnsafe(length)
  const { signal } = new AbortController()
  try {
    for (let at = 0; at < length;) {
      const bytes = await file.read(piece.subarray(at), from + at, signal)
      if (bytes === 0) throw new Error(ENDED_EARLY)
      at += bytes
    }
    return piece
  } finally {
    await file.close()
  }
}

/** In two buffers in turn: fresh ones would cost a third more. */
const readParts = (file: ServedFile, from: number, end: number | null): ByteStream =>
  async function* (signal) {
    let [at, remaining] = [from, end === null ? Infinity : end - from]
    const size = Math.min(READ_BYTES, remaining)
    let [next, other] = [Buffer.allocUnsafe(size), Buffer.allocUnsafe(size)]
    try {
      while (remaining > 0 && !signal.aborted) {
        const part = next.subarray(0, remaining)
        const bytes = await file.read(part, at, signal)
        if (bytes === 0 && end !== null && !signal.aborted) throw new Error(ENDED_EARLY)
        if (bytes === 0) return
        at += bytes
        remaining -= bytes
        yield part.subarray(0, bytes)
        ;[next, other] = [other, next]
      }
    } finally {
      await file.close()
    }
  }
