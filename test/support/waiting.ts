/** Waits until something is so, and collects what a program says meanwhile. */
import type { ChildProcess } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'

const PATIENCE_MS = 60_000

/** `said` stands in the error when it never comes to be. */
export async function waitUntil(
  isSo: () => Promise<boolean>,
  said: () => string,
  patienceMs = PATIENCE_MS,
): Promise<void> {
  const deadline = performance.now() + patienceMs
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`it never came to be: ${said()}`)
    await sleep(50)
  }
}

/** What a program has said so far. */
export function collectWords(child: ChildProcess): () => string {
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      said += text
    })
  }
  return () => said
}
