/** Reads request bodies within limits of size, depth and time. */
import type { H3Event } from 'h3'
import type { MaybePromise } from '#kit/foundation/maybe-promise.ts'
import { outlineJson, parseJson } from '#kit/foundation/json-reader.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { refuse } from '../answers/faults.ts'
import { LIMITS } from '../answers/limits.ts'

/** The connection is closed after these: what is still on its way is not read. */
const CLOSE = { connection: 'close' }
/** Many machines boot at once: they come again spread over some seconds. */
const SOON = { 'retry-after': '5' }

interface FormLimits {
  /** Bytes. */
  readonly most: number
  readonly seconds: number
  readonly takesFiles?: boolean | undefined
}

export type BodyReader = ReturnType<typeof createBodyReader>

/** Before a byte of it is read. */
export function checkLength(event: H3Event, most: number): void {
  const length = event.req.headers.get('content-length')
  if (length !== null && Number(length) > most) throw tooLong(most)
}

/** The bytes as they arrive; fails past `most`, and when nothing arrives for `seconds`. */
export async function* streamBody(
  event: H3Event,
  most: number,
  seconds: number,
): AsyncGenerator<Uint8Array> {
  let length = 0
  for await (const piece of readPieces(event, () => seconds)) {
    length += piece.byteLength
    if (length > most) throw new Fault('too-large', `more than ${most} bytes were sent`)
    yield piece
  }
}

/** `patience`: for the next piece, in seconds. */
async function* readPieces(event: H3Event, patience: () => number): AsyncGenerator<Uint8Array> {
  const reader = event.req.body?.getReader()
  if (reader === undefined) return
  try {
    for (;;) {
      const { done, value } = await within(reader.read(), patience())
      if (done) return
      yield value
    }
  } finally {
    // Who stops in the middle wants no more of it; a body that broke off has nothing to cancel.
    reader.cancel().catch(() => {})
  }
}

/** All of its pieces, the time for them and their number of bytes limited. */
async function* readWhole(event: H3Event, most: number, seconds: number) {
  const deadline = performance.now() + seconds * 1000
  let length = 0
  for await (const piece of readPieces(event, () => (deadline - performance.now()) / 1000)) {
    length += piece.byteLength
    if (length > most) throw tooLong(most)
    yield piece
  }
}

/** Not h3's `readBody`: that knows no limits of depth, of time, and of all bodies together. */
export function createBodyReader() {
  const createHold = createBudgets()

  /** What is read counts as held until it has been used. */
  async function useBytes<Value>(
    event: H3Event,
    most: number,
    seconds: number,
    use: (bytes: Buffer<ArrayBuffer>) => MaybePromise<Value>,
  ): Promise<Value> {
    checkLength(event, most)
    using hold = createHold(event)
    // A large body waits for its turn before it is read, and costs nothing.
    await hold.resize(0)
    let [held, length] = [Buffer.alloc(0), 0]
    for await (const piece of readWhole(event, most, seconds)) {
      // Pieces are copied: one of a single byte would take hundreds.
      const end = length + piece.byteLength
      if (end > held.length) held = grow(held, Math.max(end, Math.min(2 * held.length, most)))
      held.set(piece, length)
      length = end
      await hold.resize(length)
    }
    return await use(held.subarray(0, length))
  }

  function useJson<Value>(
    event: H3Event,
    most: number,
    seconds: number,
    use: (bytes: Buffer<ArrayBuffer>) => MaybePromise<Value>,
  ): Promise<Value> {
    checkJsonType(event)
    return useBytes(event, most, seconds, use)
  }

  return {
    useJson,
    /** Undefined when nothing was sent. */
    readJson: (event: H3Event, most: number, seconds: number): Promise<unknown> =>
      useJson(event, most, seconds, (bytes) => (bytes.length === 0 ? undefined : parse(bytes))),
    async readForm(
      event: H3Event,
      { most, seconds, takesFiles = false }: FormLimits,
    ): Promise<URLSearchParams> {
      const type = typeOf(event)
      const isParts = type === 'multipart/form-data'
      if (!isParts && type !== '' && type !== 'application/x-www-form-urlencoded') {
        throw wrongType('a form')
      }
      return useBytes(event, most, seconds, (bytes) =>
        isParts
          ? parseParts(event, bytes, takesFiles)
          : new URLSearchParams(bytes.toString('utf8')),
      )
    },
  }
}

/** Nothing here decodes: compressed bytes would be taken for the text or the file itself. */
export function checkEncoding(event: H3Event): void {
  const encoding = event.req.headers.get('content-encoding')
  if (encoding === null || encoding.trim().toLowerCase() === 'identity') return
  const headers = { ...CLOSE, 'accept-encoding': 'identity' }
  throw refuse(415, 'the body is encoded: send it without Content-Encoding', { headers })
}

function checkJsonType(event: H3Event): void {
  const type = typeOf(event)
  if (type !== '' && !/^application\/(?:[\w.-]+\+)?json$/.test(type)) throw wrongType('JSON')
}

function grow(held: Buffer, size: number): Buffer<ArrayBuffer> {
  const grown = Buffer.allocUnsafeSlow(size)
  grown.set(held)
  return grown
}

function parse(bytes: Buffer): unknown {
  if (outlineJson(bytes).depth > LIMITS.jsonDepth) throw JSON_REFUSALS['too-deep']()
  const document = parseJson(bytes.toString('utf8'))
  if (document !== undefined) return document
  throw JSON_REFUSALS.malformed()
}

/** What is thrown for JSON that is not taken. */
export const JSON_REFUSALS = {
  malformed: () =>
    refuse(422, 'not JSON', {
      fields: [{ loc: ['body'], msg: 'the body is not valid JSON', type: 'json_invalid' }],
    }),
  'too-deep': () => refuse(422, 'the JSON nests too deep'),
  'too-many-values': () => refuse(413, 'the JSON holds too many values, or too much text'),
  busy: () => refuse(503, 'too much is being uploaded at once', { headers: SOON }),
} as const

/** The texts of a multipart form; files in it are left out unless they are taken as texts. */
async function parseParts(
  event: H3Event,
  bytes: Buffer,
  takesFiles: boolean,
): Promise<URLSearchParams> {
  const type = event.req.headers.get('content-type') ?? ''
  try {
    const form = await new Response(new Uint8Array(bytes), {
      headers: { 'content-type': type },
    }).formData()
    const texts = [...form].map(async ([name, value]) => {
      if (typeof value === 'string') return [[name, value]]
      return takesFiles ? [[name, await value.text()]] : []
    })
    return new URLSearchParams((await Promise.all(texts)).flat())
  } catch {
    throw refuse(400, 'the form cannot be read')
  }
}

/** Empty where none is named: the body is taken for what the route wants. */
const typeOf = (event: H3Event) =>
  (event.req.headers.get('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''

/** What is awaited, or a 408 when it takes longer. */
async function within<Value>(work: Promise<Value>, seconds: number): Promise<Value> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => reject(refuse(408, 'the body took too long to arrive', { headers: CLOSE })),
    Math.max(0, seconds * 1000),
  )
  try {
    return await Promise.race([work, promise])
  } catch (error) {
    throw asRefusal(error)
  } finally {
    clearTimeout(timer)
  }
}

/** A body that broke off is the caller's doing, not a failure of ours. */
function asRefusal(error: unknown): unknown {
  const isOurs = error instanceof Error && error.name === 'HTTPError'
  return isOurs ? error : refuse(400, 'the body broke off', { headers: CLOSE })
}

/** Small bodies never wait for larger ones: each kind has a budget, and few of the larger are read at once. */
function createBudgets() {
  const left = { small: LIMITS.smallBodies, large: LIMITS.largeBodies }
  const [machines, people] = [createTurns(), createTurns()]

  return (event: H3Event) => {
    // Anybody may post as a machine, and holds up nobody who is logged in.
    const turns = event.url.pathname.startsWith('/pxe/') ? machines : people
    const length = Number(event.req.headers.get('content-length') ?? 0)
    let [isLarge, size] = [false, 0]
    const free = () => {
      left[isLarge ? 'large' : 'small'] += size
      size = 0
    }
    return {
      /** Sets how many bytes are held now; throws a 503 where there is no room for them. */
      async resize(bytes: number): Promise<void> {
        free()
        if (!isLarge && Math.max(bytes, length) > LIMITS.smallBody) {
          // Only who has sent nothing waits: what was received is held meanwhile.
          await turns.take(bytes === 0 ? event.req.signal : null)
          isLarge = true
        }
        const kind = isLarge ? 'large' : 'small'
        if (bytes > left[kind]) throw tooMuch()
        left[kind] -= bytes
        size = bytes
      },
      [Symbol.dispose]() {
        free()
        if (isLarge) turns.giveBack()
      },
    }
  }
}

/** Who waits is served in the order of coming; a 503 ends a wait that is too long, or one too many. */
function createTurns() {
  const waiting = new Set<() => void>()
  let free: number = LIMITS.largeAtOnce
  return {
    /** `signal`: the client goes away; null: it does not wait. */
    async take(signal: AbortSignal | null): Promise<void> {
      if (free > 0) {
        free -= 1
        return
      }
      if (signal === null || signal.aborted || waiting.size >= LIMITS.largeWaiting) throw tooMuch()
      const { promise, resolve, reject } = Promise.withResolvers<undefined>()
      const begin = () => resolve(undefined)
      // It leaves the queue at once: a turn that is given to who has gone would be lost.
      const end = () => {
        waiting.delete(begin)
        reject(tooMuch())
      }
      waiting.add(begin)
      const timer = setTimeout(end, LIMITS.turnSeconds * 1000)
      signal.addEventListener('abort', end, { once: true })
      try {
        await promise
      } finally {
        clearTimeout(timer)
        signal.removeEventListener('abort', end)
      }
    },
    giveBack(): void {
      const [next] = waiting
      if (next === undefined) free += 1
      else {
        waiting.delete(next)
        next()
      }
    },
  }
}

const tooLong = (most: number) =>
  refuse(413, `the body is longer than ${most} bytes`, { headers: CLOSE })
const tooMuch = () =>
  refuse(503, 'too much is being uploaded at once', { headers: { ...CLOSE, ...SOON } })
const wrongType = (wanted: string) => refuse(415, `the body must be ${wanted}`)
