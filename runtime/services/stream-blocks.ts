/** Decoders that hand out one stream: raw, gzip in this process, xz and bzip2 through their tools. */
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { Fault, renderError } from '../core/fault.ts'
import type { Blocks } from './blocks.ts'
import { toolMissing, type Shell } from './shell.ts'
import type { Source } from './sources.ts'

/** Takes a stream of buffers as blocks; a buffer is asked for only when the last one is used up. */
export function blocksOf(stream: AsyncIterable<Buffer>): Blocks {
  const chunks = stream[Symbol.asyncIterator]()
  let rest: Buffer = Buffer.alloc(0)
  return {
    async next(into) {
      while (rest.length === 0) {
        const { done, value } = await chunks.next()
        if (done === true) return null
        rest = value
      }
      const bytes = rest.copy(into)
      rest = rest.subarray(bytes)
      return { kind: 'data', bytes }
    },
    async [Symbol.asyncDispose]() {
      await chunks.return?.()
    },
  }
}

/** A raw image: read straight into the caller's buffer where the source allows it. */
export function openRaw(source: Source): Blocks {
  const { readAt, sizeBytes } = source
  if (readAt === null || sizeBytes === null || source.path === null) {
    return blocksOf(source.stream())
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

export const openGzip = (source: Source): Blocks => blocksOf(gunzip(source))

/** All members of a gzip file; damage, an early end and garbage behind it are Faults. */
async function* gunzip(source: Source): AsyncGenerator<Buffer> {
  const decoder = createGunzip({ chunkSize: 512 * 1024 })
  let sourceFailed = false
  const feeding = pipeline(async function* () {
    try {
      yield* source.stream()
    } catch (thrown) {
      sourceFailed = true
      throw thrown
    }
  }, decoder)
  // Its failure is the decoder's as well, and is thrown from there.
  feeding.catch(() => undefined)
  try {
    yield* decoder
    await feeding
  } catch (thrown) {
    throw sourceFailed ? thrown : damaged(source, thrown)
  }
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
  return blocksOf(throughTool(source, await findDecoder(shell, format), shell))
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
  let broken: unknown = null
  const feeding = pipeline(async function* () {
    try {
      yield* source.stream()
    } catch (thrown) {
      broken = thrown
      throw thrown
    }
  }, child.stdin).catch(() => undefined)
  try {
    yield* child.stdout
    const code = await exit
    await feeding
    if (broken !== null) throw broken
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
