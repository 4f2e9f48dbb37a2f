/** Asks partclone which blocks of a partition are used. */
import { addAbortListener, once } from 'node:events'
import {
  createDomainParser,
  MAX_MAP_LINE,
  renderMapDefect,
  type DomainParser,
} from './rules/domain-map.ts'
import type { RangeList } from './rules/range-list.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { Shell } from '#kit/host/shell.ts'

/**
 * `node`: a device of just the partition. `bytes`: its size; `ownBytes`: that of its file system.
 * Refused in words where the tool is missing, fails, or contradicts itself.
 */
export async function readUsedMap(
  shell: Shell,
  tool: string,
  node: string,
  { bytes, ownBytes }: { readonly bytes: number; readonly ownBytes: number },
  signal: AbortSignal,
): Promise<Result<RangeList, string>> {
  if (!(await shell.has(tool))) return refuse(`${tool} is not installed`)
  signal.throwIfAborted()
  const child = shell.pipe([tool, '--domain', ...PROGRESS, ...OUTPUT, '--source', node])
  const parser = createDomainParser(bytes, ownBytes)
  const end = () => void child.kill('SIGKILL')
  using _ = addAbortListener(signal, end)
  child.stdin.on('error', () => undefined)
  child.stdin.end()
  child.stderr.resume()
  const closed = once(child, 'close')
  for await (const line of splitLines(child.stdout)) {
    if (parser.take(line) && !parser.isWhole()) continue
    // With the whole map written, partclone only sleeps.
    end()
    break
  }
  await closed
  signal.throwIfAborted()
  return judge(tool, child.exitCode, parser)
}

const OUTPUT = ['--output', '-', '--logfile', '/dev/null']
/** Seconds: partclone waits at its end for the thread that shows progress. */
const PROGRESS = ['--quiet', '--UI-fresh', '1']

function judge(tool: string, exitCode: number | null, parser: DomainParser) {
  const used = parser.end()
  if (!used.ok && used.refusal !== 'empty') {
    return refuse(`the map of ${tool} is wrong: ${renderMapDefect(used.refusal)}`)
  }
  if (exitCode !== 0 && !parser.isWhole()) return refuse(`${tool} refused it`)
  return used.ok ? accept(used.value) : refuse(`${tool}: ${renderMapDefect(used.refusal)}`)
}

/** An endless line is cut, so that it is not taken for one of a map. */
async function* splitLines(output: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let rest = ''
  for await (const chunk of output) {
    const lines = (rest + chunk.toString('latin1')).split('\n')
    rest = (lines.pop() ?? '').slice(0, MAX_MAP_LINE)
    yield* lines
  }
  if (rest !== '') yield rest
}
