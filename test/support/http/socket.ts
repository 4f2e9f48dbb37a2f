/** Connects to a socket that another process is about to make. */
import { once } from 'node:events'
import { createConnection, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** QEMU makes its sockets within a second; on a loaded machine it may need more. */
const TRIES = 100
const PAUSE = 100

/** `path`: of a Unix socket. Errors after the connection show as its end alone. */
export async function connectSocket(path: string): Promise<Socket> {
  for (let tries = 1; ; tries++) {
    const socket = createConnection(path)
    try {
      await once(socket, 'connect')
      socket.on('error', () => {})
      return socket
    } catch (error) {
      if (tries === TRIES) throw error
      await sleep(PAUSE)
    }
  }
}
