/** What the kill tests of partial files need of each kind: bring so many bytes, kill the program, go on. */
import { once } from 'node:events'
import { stat } from 'node:fs/promises'
import { request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

/** Parts end here; what comes behind is under way when the program is killed. */
export const SAFE = 1_000_000

/** One file that comes in parts into a state directory, across several processes. */
export interface Transfer extends AsyncDisposable {
  readonly bytes: Buffer
  /** Where what has come lies. */
  file(): string
  /** What is remembered beside it; null: this kind remembers nothing. */
  record(): string | null
  /** Starts the program of this checkout, or of another one. */
  start(checkout?: string): Promise<void>
  /** The file is begun, and has so many bytes; no more of them come. */
  bring(to: number): Promise<void>
  kill(): Promise<void>
  /** Where a process that was started anew has gone on, and what it offers in the end. */
  finish(): Promise<{ readonly from: number; readonly offered: Buffer }>
}

/** Waits until a file has so many bytes. */
export async function untilLong(path: string, bytes: number): Promise<void> {
  for (let tries = 0; tries < 12_000; tries += 1) {
    const { size } = await stat(path).catch(() => ({ size: -1 }))
    if (size === bytes) return
    await sleep(5)
  }
  throw new Error(`${path} never had ${bytes} bytes`)
}

interface OpenPart {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** All that the request promises. */
  readonly length: number
}

/** Sends the beginning of a part, and leaves the connection open: nothing is answered. */
export async function sendBeginning({ url, headers, length }: OpenPart, bytes: Uint8Array) {
  const sending = request(url, {
    method: 'PATCH',
    headers: { ...headers, 'content-length': length },
  })
  sending.on('error', () => undefined) // The program is killed meanwhile.
  if (bytes.length > 0) sending.write(bytes)
  else sending.flushHeaders()
  await once(sending, 'socket')
}
