/** Decodes xz and bzip2 through their tools, which detect more faults and use more cores than we could. */
import { createBzip2Scan } from './rules/bzip2-scan.ts'
import type { Blocks } from './blocks.ts'
import { feed } from './chunks.ts'
import { toolMissing, type Shell } from '../../kit/host/shell.ts'
import type { Source } from './sources/source.ts'
import { blocksOf, damaged, GARBAGE, remember } from './stream-blocks.ts'

/** The first tool of each format that is installed decodes it; the better one comes first. */
const TOOLS = {
  // Two threads hold two blocks of the usual 24 MiB; more memory than that is not worth it.
  'img.xz': [['xz', '--decompress', '--stdout', '--threads=2', '--memlimit-mt-decompress=75MiB']],
  'img.bz2': [
    ['lbzip2', '--decompress', '--stdout', '-n', '2'],
    ['bzip2', '--decompress', '--stdout'],
  ],
} as const satisfies Record<string, readonly (readonly string[])[]>
type ToolFormat = keyof typeof TOOLS

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
  const argv = await findDecoder(shell, format)
  return blocksOf(throughTool(source, streamFor(source, format), argv, shell), 'own')
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
  // A tool that ends early closes its input; its exit code then says why.
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

/** The bytes as they are, looked at where the tools would let garbage behind the image pass. */
const streamFor = (source: Source, format: ToolFormat): AsyncIterable<Buffer> =>
  format === 'img.bz2' ? scanBzip2(source) : source.stream()

async function* scanBzip2(source: Source): AsyncGenerator<Buffer> {
  const scan = createBzip2Scan()
  for await (const chunk of source.stream()) {
    if (!scan.push(chunk).ok) throw damaged(source, GARBAGE)
    yield chunk
  }
  if (!scan.end().ok) throw damaged(source, GARBAGE)
}
