/** Decodes xz and bzip2 through their tools, which detect more faults and use more cores than we could. */
import { Fault } from '#kit/foundation/fault.ts'
import { createBzip2Scan } from './rules/bzip2-scan.ts'
import { FORMATS } from './rules/format.ts'
import type { ImageFormat } from '#appliance/disk-images.ts'
import type { Blocks } from './filler.ts'
import { writeChunks, blocksOf, damaged, GARBAGE, remember } from './stream-blocks.ts'
import { toolMissing, type Shell } from '#kit/host/shell.ts'
import type { Source } from './sources/source.ts'

/** A Fault `tool-missing` when there is none. */
export async function findDecoder(shell: Shell, format: ImageFormat): Promise<readonly string[]> {
  const { tools } = FORMATS[format]
  for (const argv of tools) {
    if (await shell.has(argv[0])) return argv
  }
  throw toolMissing(tools[0]?.[0] ?? format)
}

export async function openWithTool(
  source: Source,
  format: ImageFormat,
  shell: Shell,
  chunks: AsyncIterable<Buffer> = source.stream(),
): Promise<Blocks> {
  const argv = await findDecoder(shell, format)
  return blocksOf(throughTool(source, chunks, argv, shell), 'own')
}

async function* throughTool(
  source: Source,
  chunks: AsyncIterable<Buffer>,
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
  const input = remember(chunks)
  // A tool that ends early closes its input; its exit code says why.
  child.stdin.on('error', () => undefined)
  const feeding = writeChunks(input.chunks, child.stdin).catch(() => child.stdin.destroy())
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

/** The tools would let garbage behind the image pass. */
export async function* scanBzip2(source: Source): AsyncGenerator<Buffer> {
  const scan = createBzip2Scan()
  for await (const chunk of source.stream()) {
    if (!scan.push(chunk).ok) throw damaged(source, GARBAGE)
    yield chunk
  }
  if (!scan.end().ok) throw damaged(source, GARBAGE)
}

/** A Fault `image-broken` where the file is cut off, or something follows the data. */
export async function checkBzip2End(source: Source): Promise<void> {
  const scan = createBzip2Scan()
  for await (const chunk of source.stream()) if (!scan.push(chunk).ok) throw cutOff(source)
  if (!scan.end().ok || !scan.isWhole()) throw cutOff(source)
}

const cutOff = ({ name }: Source) =>
  new Fault('image-broken', `${name} is cut off, or something follows its end`)
