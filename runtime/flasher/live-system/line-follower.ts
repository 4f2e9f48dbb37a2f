/** Follows the lines of a growing file from the start until it is aborted. */
import { open } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { StringDecoder } from 'node:string_decoder'

interface FollowOptions {
  readonly signal: AbortSignal
  /** Milliseconds between two looks. */
  readonly everyMs?: number
}

const MAX_BYTES = 65_536

/** Whole lines alone; a file that is not there yet is waited for. Ends with the signal, without a throw. */
export async function* followLines(
  path: string,
  { signal, everyMs = 300 }: FollowOptions,
): AsyncGenerator<string, void, undefined> {
  const decoder = new StringDecoder('utf8')
  const into = Buffer.alloc(MAX_BYTES)
  let at = 0
  let rest = ''
  while (!signal.aborted) {
    const bytes = await readFrom(path, at, into)
    at += bytes
    rest += decoder.write(into.subarray(0, bytes))
    const lines = rest.split('\n')
    rest = lines.pop() ?? ''
    yield* lines
    if (bytes === 0) await sleep(everyMs, undefined, { signal }).catch(() => undefined)
  }
}

async function readFrom(path: string, at: number, into: Buffer): Promise<number> {
  try {
    await using file = await open(path)
    const { bytesRead } = await file.read(into, 0, into.length, at)
    return bytesRead
  } catch {
    return 0 // it comes, or it does not
  }
}
