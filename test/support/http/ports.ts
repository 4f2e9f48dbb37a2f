/** Ports for servers that take nothing but a number. */
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/** Below those that the kernel gives to connections, so that none of them takes the port meanwhile. */
const FIRST = 10_000
const END = 32_000
const TRIES = 100

/** Finds a port of 127.0.0.1 that is free now and that nobody gets by chance. */
export async function findPort(): Promise<number> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const port = randomInt(FIRST, END)
    if (await isFree(port)) return port
  }
  throw new Error(`none of ${TRIES} ports is free`)
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer()
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening')
  } catch {
    return false
  }
  server.close()
  await once(server, 'close')
  return true
}
