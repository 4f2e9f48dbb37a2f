/** Decoders that hand out one stream: raw, gzip in this process, xz and bzip2 through their tools. */
import type { Transform } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { Fault, renderError } from '../core/fault.ts'
import type { Blocks } from './blocks.ts'
import { feed, release } from './chunks.ts'
import { toolMissing, type Shell } from './shell.ts'
import type { Source } from './sources.ts'

/** What to do with a chunk that is used up: `own` ones are given back at once (see `release`). */
export type Chunks = 'own' | 'borrowed'

/** Takes a stream of buffers as blocks; a buffer is asked for only when the last one is used up. */
export function blocksOf(stream: AsyncIterable<Buffer>, chunkKind: Chunks): Blocks {
  const chunks = stream[Symbol.asyncIterator]()
  let rest = NOTHING
  return {
    async next(into) {
      while (rest.length === 0) {
        const { done, value } = await chunks.next()
        if (done === true) return null
        rest = value
      }
      const bytes = rest.copy(into)
      const used = rest
      rest = rest.subarray(bytes)
      if (rest.length === 0 && chunkKind === 'own') release(used)
      return { kind: 'data', bytes }
    },
    async [Symbol.asyncDispose]() {
      await chunks.return?.()
    },
  }
}

const NOTHING: Buffer = Buffer.alloc(0)

/** A raw image: read straight into the caller's buffer where the source allows it. */
export function openRaw(source: Source): Blocks {
  const { readAt, sizeBytes } = source
  if (readAt === null || sizeBytes === null || source.path === null) {
    return blocksOf(source.stream(), 'borrowed')
  }
  let offset = 0
  return {
    async next(into) {
      if (offset >= sizeBytes) return null
      const bytes = await readAt(into.subarray(0, sizeBytes - offset), offset)
      if (bytes === 0) throw endsEarly(source, offset)
      offset += bytes
      return { kind: 'data', bytes }
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}

export const openGzip = (source: Source): Blocks => blocksOf(gunzip(source), 'own')

/** All members of a gzip file; damage, an early end and garbage behind it are Faults. */
async function* gunzip(source: Source): AsyncGenerator<Buffer> {
  yield* decodeThrough(source, source.stream(), createGunzip({ chunkSize: CHUNK_BYTES }))
}

/** Decoded data comes in buffers of this size. */
export const CHUNK_BYTES = 256 * 1024

/** Feeds a decoder of this process; a failure of the source is thrown as it is, any other as damage. */
export async function* decodeThrough(
  source: Source,
  chunks: AsyncIterable<Buffer>,
  decoder: Transform,
): AsyncGenerator<Buffer> {
  const input = remember(chunks)
  // A failure on either side ends the decoder, from which it is thrown below.
  const feeding = feed(input.chunks, decoder).catch((thrown: unknown) => {
    decoder.destroy(thrown instanceof Error ? thrown : new Error(String(thrown)))
  })
  try {
    yield* decoder
    await feeding
  } catch (thrown) {
    input.check()
    throw damaged(source, thrown)
  } finally {
    decoder.destroy()
  }
}

/** Passes chunks on; `check` throws what ended them, whatever a decoder made of the early end. */
function remember(chunks: AsyncIterable<Buffer>) {
  let check = () => {}
  async function* passed() {
    try {
      yield* chunks
    } catch (thrown) {
      check = () => {
        throw thrown
      }
      throw thrown
    }
  }
  return { chunks: passed(), check: () => check() }
}

/** The first tool of each format that is installed decodes it; the better one comes first. */
const TOOLS = {
  // Two threads hold two blocks of the usual 24 MiB; more memory than that is not worth it.
  'img.xz': [['xz', '--decompress', '--stdout', '--threads=2', '--memlimit-mt-decompress=150MiB']],
  'img.bz2': [
    ['lbzip2', '--decompress', '--stdout', '-n', '2'],
    ['bzip2', '--decompress', '--stdout'],
  ],
} as const satisfies Record<string, readonly (readonly string[])[]>
export type ToolFormat = keyof typeof TOOLS

/** The tool that would decode this format here; a Fault `tool-missing` when there is none. */
export async function findDecoder(shell: Shell, format: ToolFormat): Promise<readonly string[]> {
  for (const argv of TOOLS[format]) {
    if (await shell.has(argv[0])) return argv
  }
  throw toolMissing(TOOLS[format][0][0])
}

export async function openWithTool(
  source: Source,
  format: ToolFormat,
  shell: Shell,
): Promise<Blocks> {
  return blocksOf(throughTool(source, await findDecoder(shell, format), shell), 'own')
}

async function* throughTool(
  source: Source,
  argv: readonly string[],
  shell: Shell,
): AsyncGenerator<Buffer> {
  const child = shell.pipe(argv)
  let words = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    words = (words + text).slice(-2000)
  })
  const exit = new Promise<number>((resolve) => {
    child.once('error', () => resolve(127))
    child.once('close', (code) => resolve(code ?? 128))
  })
  const input = remember(source.stream())
  // A tool that ends early closes its input; its exit code tells then.
  child.stdin.on('error', () => undefined)
  const feeding = feed(input.chunks, child.stdin).catch(() => child.stdin.destroy())
  try {
    yield* child.stdout
    const code = await exit
    await feeding
    input.check()
    if (code !== 0) throw damaged(source, words.trim() || `${argv[0]} ended with ${code}`)
  } finally {
    child.kill('SIGKILL')
    await exit
  }
}

/** The decoder's own words behind ours; the tools name their input `(stdin)`, which says nothing. */
export function damaged(source: Source, cause: unknown): Fault {
  const words = renderError(cause).replace(/^\w+: (\(stdin\): )?/, '')
  return new Fault('image-broken', `${source.name} is damaged or cut off: ${words}`, {
    cause,
    hint: 'Download or copy the image again and compare its checksum.',
  })
}

export const endsEarly = (source: Source, at: number): Fault =>
  new Fault('source-broken', `${source.name} ends early, at byte ${at}`)
