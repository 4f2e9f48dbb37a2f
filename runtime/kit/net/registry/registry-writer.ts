/** Writes to a repository of an OCI registry: blobs in chunks, and manifests, which are read back. */
import { createHash } from 'node:crypto'
import { Fault, type FaultCode } from '#kit/foundation/fault.ts'
import { decideDelay, describeFailure } from '../rules/network-failure.ts'
import {
  createEntrances,
  isTlsUnknown,
  PLAIN_REGISTRY,
  type RegistryEntrance,
  type RegistryOptions,
  REGISTRY_LOGIN,
} from './registry-entrance.ts'
import { EMPTY_CONFIG, IMAGE_MANIFEST, MANIFEST_TYPES } from './rules/oras-manifest.ts'
import { locatorOf, manifestUrl, type OrasRef, blobUrlOf } from './rules/oras.ts'
import {
  completionUrl,
  decideChunkBytes,
  MAX_REASON_BYTES,
  parseArrived,
  parseRegistryError,
  parseUploadUrl,
  renderRegistryError,
} from './rules/docker-config.ts'
import type { HttpRequest, HttpAnswer } from '../http-client.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import { readRetryAfter } from '../http-remote.ts'
import { isPassing } from '../rules/http-range.ts'

export interface RepositoryWriter extends BlobChecks {
  /** Begins a blob; `onSent` hears how many of its bytes were sent so far. */
  upload(onSent: (bytes: number) => void): Promise<BlobUpload>
  hasManifest(): Promise<boolean>
  putConfig(): Promise<void>
  /**
   * Stores the manifest under the version of the reference, reads it back and returns its digest;
   * null: the registry misses a blob that it names.
   */
  putManifest(text: string): Promise<string | null>
}

/**
 * It is given back when nothing is written any more. All of it rejects with a Fault whose message
 * names the repository.
 */
export function createRegistryWriter(options: RegistryOptions) {
  const entrances = createEntrances(options)
  return {
    /** Enters the repository of a reference, in which the reference's version will be stored. */
    async open(ref: OrasRef): Promise<RepositoryWriter> {
      const name = `${ref.host}/${ref.repository}`
      try {
        // The answer does not matter: a registry without the repository answers 404.
        const entrance = await entrances.enter(ref, 'pull,push', async ({ base, access }) => {
          const answer = await access.fetch(
            { url: `${base}/v2/`, authorization: null },
            { method: 'GET' },
          )
          answer.drop()
        })
        const requests = createRegistryRequests(entrance, name)
        return createRepositoryWriter({ ...entrance, ref, requests })
      } catch (thrown) {
        options.signal.throwIfAborted()
        const failure = describeFailure(thrown)
        if (failure === null) throw thrown
        const hint = failure.hint ?? (isTlsUnknown(thrown) ? PLAIN_REGISTRY : undefined)
        throw new Fault('upstream-failed', `${name}: ${failure.reason}`, { hint, cause: thrown })
      }
    },
    [Symbol.asyncDispose]: () => entrances[Symbol.asyncDispose](),
  }
}

type Place = Pick<RegistryEntrance, 'base' | 'repository' | 'access'> & {
  readonly ref: OrasRef
  readonly requests: RegistryRequests
}

function createRepositoryWriter(place: Place): RepositoryWriter {
  const { base, repository, requests } = place
  const blobs = createBlobChecks(place)
  const url = `${base}/v2/${repository}/blobs/uploads/`
  const upload: RepositoryWriter['upload'] = (onSent) => beginUpload({ requests, url, onSent })
  return {
    ...blobs,
    upload,
    async putConfig() {
      const { digest, size: sizeBytes } = EMPTY_CONFIG.descriptor
      if (await blobs.hasBlob({ digest, sizeBytes })) return
      const sent = await upload(() => undefined)
      const isSent = (await sent.send(Buffer.from(EMPTY_CONFIG.bytes))) === 'sent'
      const isStored = () => blobs.hasBlob({ digest, sizeBytes })
      if (isSent && (await sent.finish(digest, isStored)) === 'sent') return
      throw requests.failed('the registry lost the upload of the config of the image (2 bytes)')
    },
    hasManifest: () =>
      requests.insist(
        () => requests.once(manifestUrlOf(place), MANIFEST_HEAD),
        (reply) => {
          if (reply.status === 200) return true
          if (reply.status === 404) return false
          if (isLater(reply)) return null
          throw requests.refused(reply, 'to look for a manifest')
        },
      ),
    putManifest: (text) => putManifest(place, text),
  }
}

const MANIFEST_HEAD = { method: 'HEAD', headers: { accept: MANIFEST_TYPES.join(', ') } } as const

const manifestUrlOf = ({ base, repository, ref }: Place) =>
  manifestUrl(base, repository, locatorOf(ref.version))

async function putManifest(place: Place, text: string): Promise<string | null> {
  const { requests } = place
  const digest = `sha256:${createHash('sha256').update(text).digest('hex')}`
  const body = Buffer.from(text)
  const headers = { 'content-type': IMAGE_MANIFEST }
  const url = manifestUrlOf(place)
  const isStored = await requests.insist(
    () => requests.once(url, { method: 'PUT', headers, body }),
    (reply) => {
      if (reply.status === 201) return true
      if (isLater(reply)) return null
      if (MISSING.has(parseRegistryError(reply.text).code)) return false
      throw requests.refused(reply, 'the manifest')
    },
  )
  if (!isStored) return null
  const read = await requests.insist(
    () => requests.once(url, { method: 'GET', headers: { accept: IMAGE_MANIFEST } }),
    (reply) => (isLater(reply) ? null : reply),
  )
  if (read.status === 200 && read.text === text) return digest
  const shown = read.status === 200 ? 'another manifest' : `HTTP ${read.status}`
  throw requests.lies(`it answers ${shown} where ${digest} was stored`)
}

/** What registries call a blob that was there a moment ago, and is collected. */
const MISSING: ReadonlySet<string> = new Set(['MANIFEST_BLOB_UNKNOWN', 'BLOB_UNKNOWN'])

// Sends one blob to a registry in chunks, and goes on after a cut with what the registry has.

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
async function beginUpload(dependencies: UploadDependencies): Promise<BlobUpload> {
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
    hint: 'Correct the address of the registry in its configuration, or the headers of its proxy.',
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
    hint: 'A proxy or faulty memory changed the data. Run again.',
  })

/** A piece of a blob as it was sent, to be compared with what the registry holds. */
export interface BlobSample {
  readonly at: number
  readonly bytes: Buffer
}

interface WantedBlob {
  /** `sha256:` and 64 hexadecimal digits. */
  readonly digest: string
  readonly sizeBytes: number
}

interface BlobChecks {
  /** Rejects with a Fault `digest-mismatch` where the registry says another size or digest. */
  hasBlob(blob: WantedBlob): Promise<boolean>
  /**
   * Compares pieces of a blob with what the registry sends of it. False: it sends no ranges, so
   * that nothing was compared. Rejects with a Fault `digest-mismatch` where it sends other bytes.
   */
  compare(blob: WantedBlob, samples: readonly BlobSample[]): Promise<boolean>
}

interface BlobPlace extends Pick<RegistryEntrance, 'base' | 'repository' | 'access'> {
  readonly requests: RegistryRequests
}

const NOT_FOR_HEAD: ReadonlySet<number> = new Set([400, 401, 403, 405])

/** What cannot be of the blob, in words; null: nothing. */
function findLie({ digest, sizeBytes }: WantedBlob, { headers }: RegistryReply): string | null {
  const found = Number(headers['content-length'] ?? sizeBytes)
  const said = String(headers['docker-content-digest'] ?? digest)
  if (found === sizeBytes && said === digest) return null
  return `it has ${found} bytes as ${said} where ${digest} has ${sizeBytes}`
}

function createBlobChecks({ base, repository, access, requests }: BlobPlace): BlobChecks {
  const urlOf = ({ digest }: WantedBlob) => blobUrlOf(base, repository, digest)

  function judge(blob: WantedBlob, reply: RegistryReply): boolean | null {
    const { status } = reply
    if (status === 404) return false
    // It led to where the blob lies: addresses that are signed for GET refuse HEAD.
    const isElsewhere = URL.parse(reply.url)?.origin !== URL.parse(base)?.origin
    if (isElsewhere && NOT_FOR_HEAD.has(status)) return true
    if (isLater(reply)) return null
    if (status !== 200) throw requests.refused(reply, 'to look for a blob')
    const lie = findLie(blob, reply)
    if (lie === null) return true
    throw requests.lies(lie)
  }

  async function readBack({ digest }: WantedBlob, { at, bytes }: BlobSample) {
    const range = `bytes=${at}-${at + bytes.length - 1}`
    // A redirect leads to a storage that is not told who asks.
    const answer = await access.fetch(
      { url: blobUrlOf(base, repository, digest), authorization: null },
      { method: 'GET', headers: { range } },
    )
    const { status, headers, target } = answer
    const reply: RegistryReply = { status, headers, url: target.url, text: '' }
    if (status !== 206) {
      answer.drop()
      return reply
    }
    let seen = 0
    for await (const chunk of answer.body()) {
      const isSame = chunk.equals(bytes.subarray(seen, seen + chunk.length))
      if (!isSame) throw requests.lies(`it returns other data for ${digest} than was uploaded`)
      seen += chunk.length
    }
    if (seen === bytes.length) return reply
    throw requests.lies(`it sends ${seen} bytes of ${digest} where ${bytes.length} were asked for`)
  }

  /** A failure that passes does not cost an upload of hours. */
  const compareOne = (blob: WantedBlob, sample: BlobSample): Promise<boolean> =>
    requests.insist(
      () => readBack(blob, sample),
      (reply) => {
        const { status } = reply
        if (status === 206 || status === 200) return status === 206
        if (isLater(reply)) return null
        throw requests.failed(`HTTP ${status} when ${blob.digest} was read back`)
      },
    )

  return {
    hasBlob: (blob) =>
      requests.insist(
        () => requests.once(urlOf(blob), { method: 'HEAD' }),
        (reply) => judge(blob, reply),
      ),
    async compare(blob, samples) {
      for (const sample of samples) if (!(await compareOne(blob, sample))) return false
      return true
    },
  }
}

// Requests that change a repository: each one again where that helps, and a refusal in words.

interface RegistryReply extends Pick<HttpAnswer, 'status' | 'headers'> {
  /** The address that answered, behind all redirects. */
  readonly url: string
  /** The beginning of the answer. */
  readonly text: string
}

type RegistryRequests = ReturnType<typeof createRegistryRequests>

/** Tries in a row that bring nothing: with the waits between them some two minutes. */
const MAX_TRIES = 12

/** `name`: the repository, safe to show. */
function createRegistryRequests(
  { access, bounds }: Pick<RegistryEntrance, 'access' | 'bounds'>,
  name: string,
) {
  const { signal, retryMs } = bounds

  async function once(url: string, request: HttpRequest): Promise<RegistryReply> {
    const answer = await access.fetch({ url, authorization: null }, request)
    const { status, headers, target } = answer
    const text = await readStart(answer, request)
    return { status, headers, url: target.url, text }
  }

  /** A failure of the network passes, unless it is one that cannot. */
  async function attempt(act: () => Promise<RegistryReply>) {
    try {
      const reply = await act()
      return { reply, reason: renderRegistryError(reply.status, reply.text), cause: undefined }
    } catch (thrown) {
      signal.throwIfAborted()
      const failure = describeFailure(thrown)
      if (failure === null) throw thrown
      const { reason, hint } = failure
      if (failure.isFinal) throw failed(reason, { hint, cause: thrown })
      return { reply: null, reason, cause: thrown }
    }
  }

  const failed = (reason: string, { code = 'upstream-failed', ...rest }: FailedOptions = {}) =>
    new Fault(code, `${name}: ${reason}`, rest)

  return {
    once,
    failed,
    lies: (words: string) => failed(words, { code: 'digest-mismatch', hint: DAMAGED }),
    /** The Fault for an answer that no other try changes. */
    refused({ status, text }: RegistryReply, what: string): Fault {
      const reason = `the registry refused ${what} (${renderRegistryError(status, text)})`
      if (status === 401) return failed(reason, { code: 'login-required', hint: REGISTRY_LOGIN })
      if (status === 403) return failed(reason, { code: 'forbidden', hint: RIGHTS })
      if (status === 413) return failed(reason, { code: 'too-large', hint: LIMIT })
      return failed(reason)
    },
    /**
     * Acts until `judge` knows what an answer means; null: the same once more, after the time that
     * the registry names, else after one that grows. Rejects with a Fault `upstream-failed` where
     * nothing moves any more; `progress` tells by a change that something does.
     */
    async insist<Value>(
      act: () => Promise<RegistryReply>,
      judge: (reply: RegistryReply) => Value | null,
      progress: () => number = () => 0,
    ): Promise<Value> {
      let seen = progress()
      for (let tries = 1; ; tries += 1) {
        const { reply, reason, cause } = await attempt(act)
        const value = reply === null ? null : judge(reply)
        if (value !== null) return value
        if (progress() !== seen) tries = 1
        seen = progress()
        if (tries > MAX_TRIES) {
          throw failed(`${reason}; gave up after ${MAX_TRIES} more tries`, { cause })
        }
        const asked = reply === null ? null : readRetryAfter(reply)
        const waitMs = asked ?? decideDelay(tries, retryMs, Math.random())
        await sleep(waitMs, undefined, { signal })
      }
    },
  }
}

interface FailedOptions {
  readonly code?: FaultCode
  readonly hint?: string | undefined
  readonly cause?: unknown
}

const DAMAGED = 'The storage of the registry is damaged, or a proxy changes the data.'
const RIGHTS = 'This login may not write to the repository.'
const LIMIT =
  'A proxy in front of the registry limits the size of a request; nginx calls it client_max_body_size.'

/** Whether the same request may be answered otherwise in a moment. */
const isLater = ({ status }: Pick<RegistryReply, 'status'>): boolean => isPassing(status)

async function readStart(answer: HttpAnswer, { method }: HttpRequest): Promise<string> {
  if (method === 'HEAD') {
    answer.drop()
    return ''
  }
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of answer.body()) {
    chunks.push(chunk.subarray(0, MAX_REASON_BYTES - bytes))
    bytes += chunk.length
    if (bytes >= MAX_REASON_BYTES) break
  }
  return Buffer.concat(chunks).toString('utf8')
}
