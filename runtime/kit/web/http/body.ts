/** Reads request bodies within limits of size, depth and time. */
import type { H3Event } from 'h3'
import { createGathering } from '../../foundation/json/gathering.ts'
import { createDepthMeter } from '../answers/rules/json-depth.ts'
import { parseJson } from '../../foundation/json-reader.ts'
import type { JsonSift, Sifted } from '../../foundation/json/json-sift.ts'
import { Fault } from '../../foundation/fault.ts'
import { refuse } from '../answers/faults.ts'
import { LIMITS } from '../answers/limits.ts'

/** The connection is closed after these: what is still on its way is not read. */
const CLOSE = { connection: 'close' }

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

  async function readBytes(
    event: H3Event,
    most: number,
    seconds: number,
    accepts: (bytes: Uint8Array) => boolean,
  ): Promise<Buffer> {
    using hold = createHold(event)
    const gathering = createGathering(most)
    for await (const piece of readWhole(event, most, seconds)) {
      if (!accepts(piece)) throw tooDeep()
      gathering.add(piece)
      hold.resize(gathering.held())
    }
    return gathering.finish() ?? Buffer.alloc(0)
  }

  return {
    /** Undefined when nothing was sent. */
    async readJson(event: H3Event, most: number, seconds: number): Promise<unknown> {
      checkLength(event, most)
      checkJsonType(event)
      const meter = createDepthMeter(LIMITS.jsonDepth)
      const bytes = await readBytes(event, most, seconds, (chunk) => meter.push(chunk))
      return bytes.length === 0 ? undefined : parse(bytes)
    },
    /** What was taken out counts until it is used. */
    async siftJson<Answer>(
      event: H3Event,
      sift: JsonSift,
      { most, seconds }: { readonly most: number; readonly seconds: number },
      use: (sifted: Sifted | undefined) => Answer | Promise<Answer>,
    ): Promise<Answer> {
      checkLength(event, most)
      checkJsonType(event)
      using hold = createHold(event)
      let isEmpty = true
      for await (const piece of readWhole(event, most, seconds)) {
        isEmpty &&= piece.byteLength === 0
        if (!sift.push(piece)) throw sift.defect() === 'too-deep' ? tooDeep() : noJson(CLOSE)
        hold.resize(sift.held())
      }
      if (isEmpty) return await use(undefined)
      const sifted = sift.end()
      if (!sifted.ok) throw noJson()
      return await use(sifted.value)
    },
    async readForm(
      event: H3Event,
      { most, seconds, takesFiles = false }: FormLimits,
    ): Promise<URLSearchParams> {
      checkLength(event, most)
      const type = typeOf(event)
      const isParts = type === 'multipart/form-data'
      if (!isParts && type !== '' && type !== 'application/x-www-form-urlencoded') {
        throw wrongType('a form')
      }
      const bytes = await readBytes(event, most, seconds, () => true)
      return isParts
        ? await parseParts(event, bytes, takesFiles)
        : new URLSearchParams(bytes.toString('utf8'))
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

function parse(bytes: Buffer): unknown {
  const document = parseJson(bytes.toString('utf8'))
  if (document !== undefined) return document
  throw noJson()
}

const noJson = (headers: Readonly<Record<string, string>> = {}) =>
  refuse(422, 'not JSON', {
    fields: [{ loc: ['body'], msg: 'the body is not valid JSON', type: 'json_invalid' }],
    headers,
  })
const tooDeep = () => refuse(422, 'the JSON nests too deep', { headers: CLOSE })

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

/** Bodies up to `LIMITS.json` never wait for larger ones: each kind has a budget of its own. */
function createBudgets() {
  const left = { small: LIMITS.smallBodies, large: LIMITS.largeBodies }
  type Kind = keyof typeof left

  return (event: H3Event) => {
    const length = event.req.headers.get('content-length')
    const isSaidSmall = length === null || Number(length) <= LIMITS.json
    let [kind, size]: [Kind, number] = [isSaidSmall ? 'small' : 'large', 0]
    const free = () => {
      left[kind] += size
      size = 0
    }
    return {
      /** Sets how many bytes are held now; throws a 503 where there is no room for them. */
      resize(bytes: number): void {
        free()
        if (bytes > LIMITS.json) kind = 'large'
        if (bytes > left[kind]) throw tooMuch()
        left[kind] -= bytes
        size = bytes
      },
      [Symbol.dispose]: free,
    }
  }
}

const tooLong = (most: number) =>
  refuse(413, `the body is longer than ${most} bytes`, { headers: CLOSE })
const tooMuch = () =>
  refuse(503, 'too much is being received', { headers: { ...CLOSE, 'retry-after': '5' } })
const wrongType = (wanted: string) => refuse(415, `the body must be ${wanted}`)
