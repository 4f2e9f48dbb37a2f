/** Downloads a remote file in order, and resumes where a connection broke. */
import {
  isDeafToTags,
  judgeAnswer,
  type RangeRequest,
  type Representation,
} from './rules/http-range.ts'
import { countTries, decideDelay } from './rules/retry.ts'
import { brokenAt } from './rules/source-fault.ts'
import type { HttpRequest } from './http-client.ts'
import { isTooLong, readRetryAfter, type Remote } from './http-remote.ts'

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
        throw stop(transfer, part.to, 'the server sent more bytes than it said')
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
    const lack = known.ranges ? 'names no version of the file' : 'sends no parts'
    throw stop(transfer, at, `${reason}, and it cannot go on (the server ${lack})`, OTHER_WAY)
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
    return `${reason}, and asks for a wait of ${Math.round(waitMs / 1000)} s`
  }
  const most = countTries(isHasty)
  if (tries <= most) return null
  return `${reason}; gave up after ${most} more ${most === 1 ? 'try' : 'tries'}`
}

/** Going on without a version could join the halves of two files. */
const canResume = ({ known, wanted }: Transfer) =>
  known.ranges && (known.validator !== null || known.isFixed === true) && wanted.to !== null

const RUN_AGAIN = 'Look at the network and run again.'
const START_OVER = 'Run again: the download has to start over.'
const OTHER_WAY = 'Run again, or download the image first and flash the file.'

const positionOf = ({ remote, known }: Transfer, at: number) => ({
  name: remote.name,
  at,
  sizeBytes: known.sizeBytes,
})
const stop = (transfer: Transfer, at: number, reason: string, hint = OTHER_WAY) =>
  brokenAt(positionOf(transfer, at), reason, { hint })
