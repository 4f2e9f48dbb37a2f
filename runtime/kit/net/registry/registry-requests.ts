/** Requests that change a repository: each one again where that helps, and a refusal in words. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Fault, type FaultCode } from '#kit/foundation/fault.ts'
import type { HttpAnswer, HttpRequest } from '../http-client.ts'
import { readRetryAfter } from '../http-remote.ts'
import { isPassing } from '../rules/http-range.ts'
import { describeFailure } from '../rules/network-failure.ts'
import { decideDelay } from '../rules/retry.ts'
import { REGISTRY_LOGIN, type RegistryEntrance } from './registry-entrance.ts'
import { MAX_REASON_BYTES, renderRegistryError } from './rules/upload-answer.ts'

export interface RegistryReply extends Pick<HttpAnswer, 'status' | 'headers'> {
  /** The address that answered, behind all redirects. */
  readonly url: string
  /** The beginning of the answer. */
  readonly text: string
}

export type RegistryRequests = ReturnType<typeof createRegistryRequests>

/** Tries in a row that bring nothing: with the waits between them some two minutes. */
const MAX_TRIES = 12

/** `name`: the repository, safe to show. */
export function createRegistryRequests(
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

const DAMAGED =
  'The storage of the registry is damaged, or something on the way changes what is sent.'
const RIGHTS = 'This login may read the repository but not write it, or does not know it at all.'
const LIMIT =
  'A proxy in front of the registry limits the size of a request; nginx calls it client_max_body_size.'

/** Whether the same request may be answered otherwise in a moment. */
export const isLater = ({ status }: Pick<RegistryReply, 'status'>): boolean => isPassing(status)

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
