/** Runs a command as a whole process tree: seconds, CPU, peak memory and bytes written to a disk. */
import { spawn } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { basename } from 'node:path'

export interface Measured {
  readonly seconds: number
  readonly cpuSeconds: number
  /** The largest sum of resident memory over the tree, sampled. */
  readonly peakMib: number
  readonly writtenMib: number
}

const SAMPLE_MS = 25

/** `script` is run by bash; its exit code must be 0. */
export async function measure(script: string, node: string): Promise<Measured> {
  const before = sectorsWritten(node)
  const timed = `TIMEFORMAT='%R %U %S'; set -o pipefail; time { ${script}; }`
  const child = spawn('bash', ['-c', timed], { stdio: ['ignore', 'ignore', 'pipe'] })
  let words = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    words += text
  })
  let peak = 0
  const sampling = setInterval(() => {
    peak = Math.max(peak, residentOfTree(child.pid ?? 0))
  }, SAMPLE_MS)
  const code = await new Promise((resolve) => {
    child.once('close', resolve)
  })
  clearInterval(sampling)
  if (code !== 0) throw new Error(`${script}\nended with ${String(code)}: ${words}`)
  const [seconds = 0, user = 0, system = 0] = (words.trim().split('\n').at(-1) ?? '')
    .split(' ')
    .map(Number)
  return {
    seconds,
    cpuSeconds: user + system,
    peakMib: peak / 1024 / 1024,
    writtenMib: ((sectorsWritten(node) - before) * 512) / 1024 / 1024,
  }
}

const sectorsWritten = (node: string) =>
  Number(
    readFileSync(`/sys/block/${basename(node)}/stat`, 'utf8')
      .trim()
      .split(/\s+/)[6],
  )

/** Resident bytes of a process and all its descendants. */
function residentOfTree(root: number): number {
  const parents = new Map<number, number>()
  const resident = new Map<number, number>()
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'latin1')
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      parents.set(Number(name), Number(fields[1]))
      resident.set(Number(name), Number(fields[21]) * 4096)
    } catch {
      // It ended while we looked.
    }
  }
  const isOurs = (pid: number): boolean =>
    pid === root || (pid > 1 && isOurs(parents.get(pid) ?? 0))
  return [...resident].reduce((sum, [pid, bytes]) => (isOurs(pid) ? sum + bytes : sum), 0)
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  const [low = 0, high = 0] = [sorted[middle - (sorted.length % 2 === 0 ? 1 : 0)], sorted[middle]]
  return (low + high) / 2
}
