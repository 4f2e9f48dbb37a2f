/** A slot lives through the run and keeps what is expensive to open for one file after another. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'

const PROGRAM = fileURLToPath(new URL('slot.ts', import.meta.url))
const LentSchema = z.object({ dir: z.string(), prefix: z.string() })
const LeftSchema = z.object({ left: z.array(z.string()) })

export type Slot = Awaited<ReturnType<typeof openSlot>>

export async function openSlot() {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-slot-'))
  const path = join(folder, 'socket')
  const child = spawn(process.execPath, [PROGRAM, path], { stdio: ['pipe', 'pipe', 'inherit'] })
  // It may have ended already when it is asked to.
  child.stdin.on('error', () => undefined)
  const ended = once(child, 'exit')
  const close = async () => {
    child.stdin.end()
    await ended
    await rm(folder, { recursive: true, force: true })
  }
  const isReady = await Promise.race([once(child.stdout, 'data').then(() => true), ended])
  if (isReady !== true) {
    await close()
    throw new Error('the slot did not start')
  }
  return {
    child,
    /** What the files of this slot are given besides the runner's own environment. */
    environment: { FLASHER_TEST_SLOT: path },
    /** What the last file left behind, as a text; empty where it left nothing. It is gone then. */
    async check(): Promise<string> {
      try {
        const { left } = LeftSchema.parse(await askSlot(path, { check: true }))
        return left.length === 0 ? '' : `It left behind: ${left.join(', ')}`
      } catch (thrown) {
        return `Its slot does not answer any more: ${String(thrown)}`
      }
    },
    close,
  }
}

/** The folder of the slot's PostgreSQL, and how the names of the databases begin that the caller makes. */
export const askForPostgres = async (path: string) =>
  LentSchema.parse(await askSlot(path, { open: 'postgres' }))

async function askSlot(path: string, question: object): Promise<unknown> {
  const socket = connect(path)
  socket.write(`${JSON.stringify(question)}\n`)
  const answer: unknown = JSON.parse(await text(socket))
  const refused = z.object({ error: z.string() }).safeParse(answer)
  if (refused.success) throw new Error(`the slot: ${refused.data.error}`)
  return answer
}
