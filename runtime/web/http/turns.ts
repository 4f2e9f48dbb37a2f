/** Answers the requests of one connection one after the other, so that it never holds more than one file open. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

interface Line {
  /** The newest answer of the connection. */
  last: ServerResponse
  waiting: number
}

/** No program of a machine or a person sends more before it has read an answer. */
const MAX_WAITING = 1000

/**
 * Answers go out in the order of the requests (RFC 9112, 9.3.2), so one that came behind another gains
 * nothing by being worked on earlier.
 */
export function createTurns(accept: (request: IncomingMessage, response: ServerResponse) => void) {
  const lines = new WeakMap<Socket, Line>()

  function enqueue(line: Line, request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request
    line.waiting += 1
    if (line.waiting > MAX_WAITING) return void socket.destroy()
    line.last.once('close', () => {
      line.waiting -= 1
      // It has no socket where the connection ended before its turn.
      if (!socket.destroyed && response.socket !== null) accept(request, response)
    })
    line.last = response
  }

  const listener: RequestListener = (request, response) => {
    const { socket } = request
    const line = lines.get(socket)
    if (line === undefined) lines.set(socket, { last: response, waiting: 0 })
    // Node gives an answer its socket when those before it are out.
    else if (response.socket === null) return enqueue(line, request, response)
    else line.last = response
    accept(request, response)
  }
  return listener
}
