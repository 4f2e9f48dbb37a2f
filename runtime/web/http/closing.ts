/** Ends an HTTP server: what is under way may finish, all other connections go at once. */

/** What of node's HTTP server ends it. */
export interface ClosableServer {
  on(event: 'request', listener: (request: unknown, response: Answering) => void): unknown
  close(ended: () => void): unknown
  closeAllConnections(): void
}

interface Answering {
  once(event: 'close', listener: () => void): unknown
}

interface Closing {
  /** Resolves once nothing is open any more. Answers that take longer than `graceMs` are cut off. */
  end(graceMs: number): Promise<void>
}

/** To be called before the first request: a browser holds connections that asked for nothing yet. */
export function watchRequests(server: ClosableServer): Closing {
  let underWay = 0
  let isEnding = false
  const cutIdle = () => {
    if (isEnding && underWay === 0) server.closeAllConnections()
  }
  server.on('request', (_request, response) => {
    underWay += 1
    response.once('close', () => {
      underWay -= 1
      cutIdle()
    })
  })
  return {
    async end(graceMs) {
      const closed = new Promise<void>((resolve) => {
        server.close(() => resolve())
      })
      isEnding = true
      cutIdle()
      const cutting = setTimeout(() => server.closeAllConnections(), graceMs)
      await closed
      clearTimeout(cutting)
    },
  }
}
