/** A file on a web server: its current address, its metadata, and how to request it. */
import { setTimeout as sleep } from 'node:timers/promises'
import {
  describeHead,
  describeProbe,
  isPassing,
  mergeRepresentations,
  type Representation,
  isDeafToTags,
  judgeAnswer,
  type RangeRequest,
} from './rules/http-range.ts'
import type { HttpTarget } from './rules/image-location.ts'
import {
  brokenAt,
  countTries,
  decideDelay,
  describeFailure,
  type NetworkFailure,
  notReachable,
  parseRetryAfter,
  readingCancelled,
} from './rules/network-failure.ts'
import type { HttpAnswer, HttpClient, HttpRequest } from './http-client.ts'

interface RemoteOptions {
  /** Safe to show. */
  readonly name: string
  readonly target: HttpTarget
  readonly client: Pick<HttpClient, 'fetch'>
  readonly signal: AbortSignal
  /** Milliseconds before the first repeat. */
  readonly retryMs: number
  /** It is given up after one repeat, whatever that brings; absent: it is not. */
  readonly isHasty?: boolean | undefined
  /** HEAD is not asked, as the address is signed for GET alone; absent: it is. */
  readonly isGetOnly?: boolean
  /**
   * Returns a new address of the same file for one that has expired; null: there is none. Absent:
   * the address does not expire.
   */
  readonly renew?: ((url: string) => Promise<string | null>) | undefined
  /** Says what a refusal of the first look means and what helps; absent: the status says enough. */
  readonly explain?: (status: number) => RefusalWords
}

interface RefusalWords {
  readonly reason: string
  readonly hint: string | undefined
}

export interface Remote extends Pick<RemoteOptions, 'name' | 'retryMs'> {
  readonly isHasty: boolean
  /** Goes where the last redirect led, and back to the start where that has expired. */
  ask(request: HttpRequest): Promise<HttpAnswer>
  /** What is there; a Fault `input-missing` where it is unavailable. */
  inspect(): Promise<Representation>
  /** Throws what is no network failure, and a Fault `cancelled` after the signal. */
  failureOf(thrown: unknown): NetworkFailure
  pause(ms: number): Promise<void>
}

/** Any of these answers an expired signed address; the original one gives a new one. */
const isExpired = (status: number) => [400, 401, 403, 404, 410].includes(status)

/** It remembers where the last redirect led. */
export function createRemote(options: RemoteOptions): Remote {
  const { name, client, signal, retryMs, isHasty = false, renew } = options
  let { target } = options
  let current = target
  let renewal: Promise<boolean> | null = null

  async function fetchFrom(from: HttpTarget, request: HttpRequest) {
    try {
      const answer = await client.fetch(from, request)
      current = answer.status < 400 ? answer.target : target
      return answer
    } catch (thrown) {
      current = target // the other server may be the one that is gone
      throw thrown
    }
  }

  async function ask(request: HttpRequest): Promise<HttpAnswer> {
    const [from, start] = [current, target]
    let answer = await fetchFrom(from, request)
    if (!isExpired(answer.status)) return answer
    if (from !== target) {
      answer.drop()
      answer = await fetchFrom(target, request)
    }
    if (renew === undefined || !isExpired(answer.status) || !(await renewFrom(start))) return answer
    answer.drop()
    return fetchFrom(target, request)
  }

  /** Where several requests are refused at once, one of them asks for all. False: there is no new address. */
  async function renewFrom(start: HttpTarget): Promise<boolean> {
    if (target !== start) return true
    renewal ??= replaceTarget(start).finally(() => {
      renewal = null
    })
    return await renewal
  }

  async function replaceTarget({ url }: HttpTarget): Promise<boolean> {
    const fresh = (await renew?.(url)) ?? null
    if (fresh === null || fresh === url) return false
    target = { url: fresh, authorization: null }
    current = target
    return true
  }

  function failureOf(thrown: unknown): NetworkFailure {
    if (signal.aborted) throw readingCancelled(name)
    const failure = describeFailure(thrown)
    if (failure === null) throw thrown
    return failure
  }

  async function pause(ms: number) {
    // The one thing that ends a sleep early is the signal.
    await sleep(ms, undefined, { signal }).catch(() => {
      throw readingCancelled(name)
    })
  }

  const remote = { name, retryMs, isHasty, ask, failureOf, pause }
  const explain = options.explain ?? ((status) => ({ reason: `HTTP ${status}`, hint: undefined }))
  return {
    ...remote,
    inspect: () =>
      inspect(remote, explain, options.isGetOnly === true).catch((thrown: unknown) => {
        const { reason, hint } = failureOf(thrown)
        throw notReachable(name, reason, { hint, cause: thrown })
      }),
  }
}

async function inspect(
  remote: Omit<Remote, 'inspect'>,
  explain: (status: number) => RefusalWords,
  isGetOnly: boolean,
): Promise<Representation> {
  const head = isGetOnly ? null : await askHead(remote)
  const whole = head?.status === 200 ? describeHead(head.headers) : null
  if (whole !== null && head?.headers['accept-ranges'] === 'none') return whole
  // The one sure way to learn whether a server sends parts.
  const probe = await askPatiently(remote, { method: 'GET', headers: { range: 'bytes=0-0' } })
  const found = mergeRepresentations(whole, describeProbe(probe.status, probe.headers))
  if (found !== null) return found
  const { reason, hint } = explain(probe.status)
  throw notReachable(remote.name, reason, { hint })
}

const askHead = (remote: Omit<Remote, 'inspect'>): Promise<HttpAnswer | null> =>
  askPatiently(remote, { method: 'HEAD' }).catch((thrown: unknown) => {
    if (remote.failureOf(thrown).isHangUp) return null // some servers do so at a HEAD
    throw thrown
  })

/** Waits where the server names a time to come back. Any other refusal is an answer here. */
async function askPatiently(
  { ask, pause, isHasty }: Omit<Remote, 'inspect'>,
  request: HttpRequest,
): Promise<HttpAnswer> {
  for (let tries = 1; ; tries += 1) {
    const answer = await ask(request)
    answer.drop()
    const waitMs = readRetryAfter(answer)
    if (waitMs === null || tries > countTries(isHasty) || isTooLong(waitMs, isHasty)) return answer
    await pause(waitMs)
  }
}

/** A source that is not the only one is not waited for where it asks for more than this. */
const HASTY_WAIT_MS = 2000

const isTooLong = (waitMs: number, isHasty: boolean): boolean => isHasty && waitMs > HASTY_WAIT_MS

/** Returns the milliseconds that a busy server asks for; null: it does not, or is not busy. */
export function readRetryAfter(answer: Pick<HttpAnswer, 'status' | 'headers'>): number | null {
  const { status, headers } = answer
  if (!isPassing(status)) return null
  const text = headers['retry-after']
  return parseRetryAfter(text, Date.parse(text ?? '') - Date.now())
}

/** Downloads a remote file in order, and resumes where a connection broke. */
interface Transfer {
  readonly remote: Remote
  /** What the file was when it was found; an answer about another one is a Fault. */
  readonly known: Representation
  /** Which bytes; `ranged` false: all of them, asked for without a `Range`. */
  readonly wanted: RangeRequest
}

interface Setback {
  readonly reason: string
  readonly hint?: string | undefined
  readonly cause?: unknown
  /** How long the server asks us to wait; null: we decide. */
  readonly waitMs: number | null
  readonly isFinal: boolean
}

interface Progress {
  at: number
  /** Attempts since the last byte; all of them where the server is given up soon. */
  tries: number
  /** The last answer was whole: where the size was not known before, this is the end. */
  isEnded: boolean
}

/**
 * Yields each chunk as it comes and asks for no more until it is wanted. Throws a Fault
 * `source-broken` that says where it stopped and what to do, or `cancelled`.
 */
export async function* receive(transfer: Transfer): AsyncGenerator<Buffer, void, undefined> {
  const { from, to } = transfer.wanted
  const progress = { at: from, tries: 0, isEnded: false }
  while (to === null ? !progress.isEnded : progress.at < to) {
    const setback = yield* attempt(transfer, progress)
    if (setback !== null) await recover(transfer, progress, setback)
  }
}

async function* attempt(
  transfer: Transfer,
  progress: Progress,
): AsyncGenerator<Buffer, Setback | null, undefined> {
  const { remote } = transfer
  try {
    const part = await openPart(transfer, progress)
    if (part.setback !== null) return part.setback
    for await (const chunk of part.body) {
      progress.at += chunk.length
      if (!remote.isHasty) progress.tries = 0
      if (part.to !== null && progress.at > part.to) {
        throw stop(transfer, part.to, 'the server sent more bytes than it announced')
      }
      yield chunk
    }
    progress.isEnded = part.to === null || progress.at === part.to
    return progress.isEnded ? null : SHORT
  } catch (thrown) {
    const { reason, hint, isFinal } = remote.failureOf(thrown)
    return { reason, hint, isFinal, cause: thrown, waitMs: null }
  }
}

const SHORT: Setback = { reason: 'the answer ended early', waitMs: null, isFinal: false }

async function openPart(transfer: Transfer, { at }: Progress) {
  const { remote, known, wanted } = transfer
  const asked = { from: at, to: wanted.to, ranged: wanted.ranged || at > wanted.from }
  const answer = await askPart(remote, asked, known)
  const verdict = judgeAnswer(asked, known, answer)
  if (verdict.kind === 'take') return { setback: null, to: verdict.to, body: answer.body() }
  answer.drop()
  if (verdict.kind === 'never') {
    throw stop(transfer, at, verdict.reason, verdict.changed ? START_OVER : OTHER_WAY)
  }
  const reason = `the server answered HTTP ${answer.status}`
  return { setback: { reason, waitMs: readRetryAfter(answer), isFinal: false } }
}

async function askPart(remote: Remote, asked: RangeRequest, known: Representation) {
  const answer = await remote.ask(requestFor(asked, known))
  if (!isDeafToTags(asked, known, answer)) return answer
  answer.drop()
  const part = await remote.ask(requestFor(asked, { ...known, validator: null }))
  if (part.headers.etag === known.validator) return part
  part.drop()
  return answer
}

/** The end of a range is always named: some servers ignore open ones, or end them where they like. */
function requestFor(
  { from, to, ranged }: RangeRequest,
  { validator }: Representation,
): HttpRequest {
  if (!ranged || to === null) return { method: 'GET' }
  const range = `bytes=${from}-${to - 1}`
  return {
    method: 'GET',
    headers: validator === null ? { range } : { range, 'if-range': validator },
  }
}

/** Waits until another attempt makes sense, or throws where none does. */
async function recover(transfer: Transfer, progress: Progress, setback: Setback) {
  const { remote, known, wanted } = transfer
  const { reason, hint, cause, waitMs, isFinal } = setback
  const { at } = progress
  progress.tries += 1
  if (at > wanted.from && !canResume(transfer)) {
    const lack = known.ranges ? 'sends no version of the file' : 'sends no parts'
    throw stop(transfer, at, `${reason}, and it cannot resume (the server ${lack})`, OTHER_WAY)
  }
  if (isFinal) throw brokenAt(positionOf(transfer, at), reason, { hint, cause })
  const enough = findEnough(setback, progress, remote)
  if (enough !== null) {
    throw brokenAt(positionOf(transfer, at), enough, { hint: hint ?? RUN_AGAIN, cause })
  }
  await remote.pause(waitMs ?? decideDelay(progress.tries, remote.retryMs, Math.random()))
}

/** Says why a server is given up; null: it is asked again. */
function findEnough(
  { reason, waitMs }: Setback,
  { tries }: Progress,
  { isHasty }: Remote,
): string | null {
  if (waitMs !== null && isTooLong(waitMs, isHasty)) {
    return `${reason}, and asks to wait ${Math.round(waitMs / 1000)} s`
  }
  const most = countTries(isHasty)
  if (tries <= most) return null
  return `${reason}; gave up after ${most} more ${most === 1 ? 'try' : 'tries'}`
}

/** Going on without a version could join the halves of two files. */
const canResume = ({ known, wanted }: Transfer) =>
  known.ranges && (known.validator !== null || known.isFixed === true) && wanted.to !== null

const RUN_AGAIN = 'Check the network and run again.'
const START_OVER = 'Run again: the download has to start over.'
const OTHER_WAY = 'Run again, or download the image first and flash the file.'

const positionOf = ({ remote, known }: Transfer, at: number) => ({
  name: remote.name,
  at,
  sizeBytes: known.sizeBytes,
})
const stop = (transfer: Transfer, at: number, reason: string, hint = OTHER_WAY) =>
  brokenAt(positionOf(transfer, at), reason, { hint })
