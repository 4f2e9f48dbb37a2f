/** Sends one blob to a registry in chunks, and goes on after a cut with what the registry has. */
import { Fault } from '#kit/foundation/fault.ts'
import type { HttpRequest } from '../http-client.ts'
import { isLater, type RegistryReply, type RegistryRequests } from './registry-requests.ts'
import {
  completionUrl,
  decideChunkBytes,
  parseArrived,
  parseRegistryError,
  parseUploadUrl,
} from './rules/upload-answer.ts'

/** `lost`: the registry does not know this upload any more, so that it has to begin again. */
type SendOutcome = 'sent' | 'lost'

export interface BlobUpload {
  /** How many bytes each chunk has, but the last one. */
  readonly chunkBytes: number
  /** Sends the next bytes, and resolves when the registry has them. */
  send(chunk: Buffer): Promise<SendOutcome>
  /**
   * Completes the blob; `isStored` tells whether the registry has it, for an answer that was lost.
   * Rejects with a Fault `digest-mismatch` where the registry got other bytes than were sent.
   */
  finish(digest: string, isStored: () => Promise<boolean>): Promise<SendOutcome>
  /** Gives up what was sent; best effort, as registries sweep what nobody completes. */
  drop(): Promise<void>
}

interface UploadDependencies {
  readonly requests: RegistryRequests
  readonly url: string
  /** Called with the number of bytes that were sent so far, also with a smaller one after a cut. */
  readonly onSent: (bytes: number) => void
}

/** Held in memory until the registry has it. */
const CHUNK_BYTES = 8 * 1024 * 1024
/** Registries read the whole blob once more before they answer to its completion. */
const COMPLETION_MS = 15 * 60_000
const OCTETS = { 'content-type': 'application/octet-stream' } as const

interface UploadProgress extends Pick<UploadDependencies, 'requests' | 'onSent'> {
  /** The address at which it goes on, which changes with every answer. */
  url: string
  /** How many bytes the registry has. */
  arrived: number
}

/** Rejects with a Fault where the registry refuses it. */
export async function beginUpload(dependencies: UploadDependencies): Promise<BlobUpload> {
  const { requests, url, onSent } = dependencies
  const begun = await requests.insist(
    () => requests.once(url, { method: 'POST', headers: { 'content-length': '0' } }),
    (reply) => {
      if (reply.status === 202) return reply
      if (isLater(reply)) return null
      throw requests.refused(reply, 'the upload')
    },
  )
  const session = { requests, onSent, url: readNextUrl(requests, begun), arrived: 0 }
  const least = textOf(begun.headers['oci-chunk-min-length'])
  return {
    chunkBytes: decideChunkBytes(CHUNK_BYTES, least),
    async send(chunk) {
      const outcome = await sendChunk(session, chunk)
      onSent(session.arrived)
      return outcome
    },
    finish: (digest, isStored) => complete(session, digest, isStored),
    async drop() {
      // 405 is an answer of registries that forget uploads by themselves.
      await requests.once(session.url, { method: 'DELETE' }).catch(() => undefined)
    },
  }
}

interface ChunkSpan {
  readonly start: number
  readonly end: number
}

async function sendChunk(session: UploadProgress, chunk: Buffer): Promise<SendOutcome> {
  const { requests } = session
  const span = { start: session.arrived, end: session.arrived + chunk.length }
  /** Whether we know how much of the chunk has arrived. */
  let isSure = true

  async function act(): Promise<RegistryReply> {
    if (!isSure) {
      const status = await requests.once(session.url, { method: 'GET' })
      if (!isAccepted(status)) return status
      isSure = takeArrived(session, status, span, null)
      if (!isSure) return { ...status, status: 404 }
      if (session.arrived === span.end) return status
    }
    isSure = false
    const from = session.arrived
    return await requests.once(session.url, {
      method: 'PATCH',
      headers: { ...OCTETS, 'content-range': `${from}-${span.end - 1}` },
      body: chunk.subarray(from - span.start),
      onSent: (bytes) => session.onSent(from + bytes),
    })
  }

  function judge(reply: RegistryReply): SendOutcome | null {
    if (isSure) return 'sent'
    if (isAccepted(reply)) {
      isSure = takeArrived(session, reply, span, span.end)
      return isSure && session.arrived === span.end ? 'sent' : null
    }
    // 416: it has more or less of it than we thought.
    if (isLater(reply) || reply.status === 416) return null
    if (isGone(reply)) return 'lost'
    throw requests.refused(reply, 'a chunk of the upload')
  }

  return await requests.insist(act, judge, () => session.arrived)
}

/** False: what the answer says cannot be. `silent`: what it means where it says nothing. */
function takeArrived(
  session: UploadProgress,
  reply: RegistryReply,
  { start, end }: ChunkSpan,
  silent: number | null,
): boolean {
  if (reply.headers.location !== undefined) session.url = readNextUrl(session.requests, reply)
  const found = parseArrived(textOf(reply.headers.range)) ?? silent
  if (found === null || found < start || found > end) return false
  session.arrived = found
  return true
}

async function complete(
  { requests, url }: UploadProgress,
  digest: string,
  isStored: () => Promise<boolean>,
): Promise<SendOutcome> {
  const headers = { ...OCTETS, 'content-length': '0' }
  const request: HttpRequest = { method: 'PUT', headers, stallMs: COMPLETION_MS }
  let isFirst = true

  async function act(): Promise<RegistryReply> {
    if (!isFirst && (await isStored())) return STORED
    isFirst = false
    return await requests.once(completionUrl(url, digest), request)
  }

  return await requests.insist(act, (reply): SendOutcome | null => {
    if (reply.status === 201) return 'sent'
    if (isLater(reply)) return null
    if (parseRegistryError(reply.text).code === 'DIGEST_INVALID') throw damaged(digest)
    if (isGone(reply)) return 'lost'
    throw requests.refused(reply, 'the completion of the upload')
  })
}

/** Stands for the answer to a completion that was lost on its way. */
const STORED: RegistryReply = { status: 201, headers: {}, url: '', text: '' }

function readNextUrl({ failed }: RegistryRequests, { url, headers }: RegistryReply): string {
  const next = parseUploadUrl(url, headers.location)
  if (next.ok) return next.value
  throw failed(next.refusal, {
    hint: 'Correct the address that the registry has of itself, or what its proxy tells it.',
  })
}

const isAccepted = ({ status }: RegistryReply) => status === 202 || status === 204

/** The widespread registry answers 404 to an upload of which it got a part of a chunk. */
const isGone = ({ status, text }: RegistryReply): boolean =>
  status === 404 || status === 410 || parseRegistryError(text).code === 'BLOB_UPLOAD_INVALID'

const textOf = (header: string | readonly string[] | undefined): string | undefined =>
  typeof header === 'string' ? header : header?.[0]

const damaged = (digest: string) =>
  new Fault('digest-mismatch', `the registry did not get the bytes that were sent as ${digest}`, {
    hint: 'Something on the way changes what is sent: a proxy, or damaged memory. Run again.',
  })
