/** Runs a command as a whole process tree: seconds, CPU, peak memory and bytes written to a disk. */
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { readTreeUse } from './process-tree.ts'

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
    peak = Math.max(peak, readTreeUse(child.pid ?? 0).residentBytes)
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

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  const [low = 0, high = 0] = [sorted[middle - (sorted.length % 2 === 0 ? 1 : 0)], sorted[middle]]
  return (low + high) / 2
}
