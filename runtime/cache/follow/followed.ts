/** Talks to the cache that is followed: what it has, a part of an image, its list. */
import { createHttpClient } from '../../kit/net/http-client.ts'
import { askDocument } from '../../kit/net/json-client.ts'
import { parseContentRange } from '../../kit/net/rules/http-range.ts'
import { parseHttpTarget, type HttpTarget } from '../../kit/net/rules/image-location.ts'
import { describeFailure } from '../../kit/net/rules/network-failure.ts'
import { Fault, renderError } from '../../kit/foundation/fault.ts'
import type { Environment } from '../../kit/host/shell.ts'
import { HOPS_HEADER, parseHeadAnswer, type HeadAnswer } from './rules/followed-address.ts'

export type Followed = ReturnType<typeof createFollowed>

interface FollowedOptions {
  /** The base address of the followed cache, without a slash at its end. */
  readonly base: string
  readonly env: Environment
  /** Milliseconds without a byte after which it counts as away. */
  readonly stallMs?: number
}

/** Bytes `from` up to, without, `to` of a version. */
interface FollowedPart {
  readonly url: string
  readonly sha256: string
  readonly from: number
  readonly to: number
  readonly signal: AbortSignal
}

const STALL_MS = 8000
/** A list of some 50,000 images. */
const MAX_LIST_BYTES = 32 * 1024 * 1024

/** Creates access to the followed cache; its connections are kept until it is disposed. */
export function createFollowed({ base, env, stallMs = STALL_MS }: FollowedOptions) {
  const ending = new AbortController()
  const client = createHttpClient({ env, signal: ending.signal, stallMs })

  /** Throws a Fault `upstream-failed`, or what is no failure of the network. */
  async function attempt<Value>(work: () => Promise<Value>): Promise<Value> {
    try {
      return await work()
    } catch (thrown) {
      if (thrown instanceof Fault) throw thrown
      throw away(base, describeFailure(thrown)?.reason ?? renderError(thrown), thrown)
    }
  }

  /** The bytes as they come; throws a Fault `upstream-failed` where they are not those. */
  async function* open(
    { url, signal }: Pick<FollowedPart, 'url' | 'signal'>,
    part: Pick<FollowedPart, 'sha256' | 'from' | 'to'> | null,
  ): AsyncGenerator<Buffer, void, undefined> {
    const headers = part === null ? {} : { range: `bytes=${part.from}-${part.to - 1}` }
    const answer = await attempt(() =>
      client.fetch(targetOf(url), { method: 'GET', headers, signal }),
    )
    const why = part === null ? whyNotWhole(answer.status) : whyNotPart(part, answer)
    if (why !== null) {
      answer.drop()
      throw away(base, why)
    }
    const body = answer.body()
    try {
      for (;;) {
        const next = await attempt(() => body.next())
        if (next.done === true) return
        yield next.value
      }
    } finally {
      await body.return()
    }
  }

  return {
    base,
    /** `hops`: how many caches have passed the request on before. Throws a Fault where it is away. */
    async ask(url: string, hops: number): Promise<HeadAnswer> {
      const { status, headers } = await attempt(async () => {
        const asked = { method: 'HEAD', headers: { [HOPS_HEADER]: String(hops + 1) } } as const
        const answer = await client.fetch(targetOf(url), asked)
        answer.drop()
        return answer
      })
      return parseHeadAnswer(status, headers)
    },
    readPart: (part: FollowedPart) => open(part, part),
    /** All bytes of what has no digest yet. */
    readWhole: (url: string, signal: AbortSignal) => open({ url, signal }, null),
    /** The list of images as it is sent. Throws a Fault where it is away or answers something else. */
    async list(all: boolean, hops: number): Promise<string> {
      const { status, bytes } = await attempt(() =>
        askDocument(client, targetOf(`${base}/catalog${all ? '?all' : ''}`), {
          headers: { [HOPS_HEADER]: String(hops + 1) },
          maxBytes: MAX_LIST_BYTES,
          timeoutMs: stallMs,
        }),
      )
      if (status !== 200) throw away(base, `it answered HTTP ${status}`)
      return bytes.toString()
    },
    async [Symbol.asyncDispose]() {
      ending.abort()
      await client[Symbol.asyncDispose]()
    },
  }
}

/** The addresses are ours and well formed. */
function targetOf(url: string): HttpTarget {
  const target = parseHttpTarget(url)
  if (target === null) throw new Fault('input-invalid', `not an address: ${url}`)
  return target
}

interface PartAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
}

function whyNotPart(
  { sha256, from, to }: Pick<FollowedPart, 'sha256' | 'from' | 'to'>,
  { status, headers }: PartAnswer,
): string | null {
  if (status !== 206) return `it answered HTTP ${status} to a range`
  const range = parseContentRange(String(headers['content-range'] ?? ''))
  if (range?.from !== from || range.to !== to) return 'it sent another range'
  const named = String(headers['x-withcache-sha256'] ?? sha256).toLowerCase()
  return named === sha256 ? null : 'it has another version of the image by now'
}

const whyNotWhole = (status: number) => (status === 200 ? null : `it answered HTTP ${status}`)

const away = (base: string, reason: string, cause?: unknown) =>
  new Fault('upstream-failed', `the followed cache ${base} failed: ${reason}`, {
    hint: 'Look whether it runs and can be reached from here ([cache] follow).',
    cause,
  })
