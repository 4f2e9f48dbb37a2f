/** Closes an HTTP server: requests under way may finish, idle connections end at once. */
import type { Server, ServerResponse } from 'node:http'

export interface ClosableServer extends Pick<Server, 'closeAllConnections'> {
  on(
    event: 'request',
    listener: (request: unknown, response: Pick<ServerResponse, 'on'>) => void,
  ): unknown
  close(ended: () => void): unknown
}

/**
 * Call it before the first request. Node's own `closeIdleConnections` leaves those that have not
 * asked for anything yet, and browsers hold such connections.
 */
export function watchRequests(server: ClosableServer) {
  let underWay = 0
  let isEnding = false
  const cutIdle = () => {
    if (isEnding && underWay === 0) server.closeAllConnections()
  }
  const leave = () => {
    underWay -= 1
    cutIdle()
  }
  server.on('request', (_request, response) => {
    underWay += 1
    response.on('close', leave)
  })
  return {
    /** Resolves once nothing is open any more. Answers that take longer than `graceMs` are cut off. */
    async end(graceMs: number): Promise<void> {
      const { promise: closed, resolve } = Promise.withResolvers<void>()
      server.close(resolve)
      isEnding = true
      cutIdle()
      const cutting = setTimeout(() => server.closeAllConnections(), graceMs)
      await closed
      clearTimeout(cutting)
    },
  }
}
