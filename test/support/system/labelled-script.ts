/** Runs a shell script in namespaces of its own, and finds what it printed behind a label. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import * as assert from 'uvu/assert'

interface LabelledScript {
  /** Options of `unshare`. */
  readonly namespaces: readonly string[]
  readonly script: string
  /** `$1` and so on. */
  readonly operands: readonly string[]
}

/** All that the script printed, and the rest of its line `LABEL: …`; fails where it exits with an error. */
export async function runLabelledScript({ namespaces, script, operands }: LabelledScript) {
  const child = spawn('unshare', [...namespaces, 'sh', '-c', script, 'sh', ...operands], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const printed: string[] = []
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => printed.push(chunk.toString()))
  }
  await once(child, 'close')
  const text = printed.join('')
  assert.is(child.exitCode, 0, text)
  return {
    text,
    lineOf: (label: string): string => new RegExp(`^${label}: (.*)$`, 'm').exec(text)?.[1] ?? '',
  }
}
