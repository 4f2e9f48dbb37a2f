/** QEMU's monitor (QMP): a command as JSON over a socket, and its answer. */
import { createInterface } from 'node:readline'
import { destr } from 'destr'
import { z } from 'zod'
import { connectSocket } from '../http/socket.ts'

const AnswerSchema = z.union([
  z.object({ return: z.unknown() }),
  z.object({ error: z.object({ desc: z.string() }) }),
])

export interface Monitor {
  /** The command's answer; rejects with QEMU's own message when it refuses. */
  execute(command: string, parameters?: Readonly<Record<string, unknown>>): Promise<unknown>
}

/** `path`: the socket of `-qmp unix:…,server=on,wait=off`. Each command is a connection of its own. */
export function createMonitor(path: string): Monitor {
  return {
    async execute(command, parameters = {}) {
      const socket = await connectSocket(path)
      try {
        const lines = createInterface({ input: socket })[Symbol.asyncIterator]()
        const ask = async (question: Readonly<Record<string, unknown>>) => {
          socket.write(`${JSON.stringify(question)}\n`)
          return readAnswer(lines)
        }
        await ask({ execute: 'qmp_capabilities' })
        return await ask({ execute: command, arguments: parameters })
      } finally {
        socket.destroy()
      }
    },
  }
}

/** Passes over the greeting and over events, which come in between. */
async function readAnswer(lines: AsyncIterator<string>): Promise<unknown> {
  for (;;) {
    const { done, value } = await lines.next()
    if (done === true) throw new Error('the monitor of the virtual machine hung up')
    const answer = AnswerSchema.safeParse(destr(value))
    if (!answer.success) continue
    if ('error' in answer.data) throw new Error(`the monitor says: ${answer.data.error.desc}`)
    return answer.data.return
  }
}
