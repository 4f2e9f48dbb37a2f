/** The client of a request that came by way of another server: who it is, and the proof that a server of ours says so. */
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

/** It is believed only with its seal; anybody may send the header. */
export const CLIENT_HEADER = 'flasher-client'

export interface PassedClient {
  /** Empty: that server did not know it. */
  readonly ip: string
  /** Whether it spoke TLS to that server. */
  readonly isSecure: boolean
}

type SealedRequest = Pick<IncomingMessage, 'method' | 'url' | 'headers'>

export type ClientSeal = ReturnType<typeof createClientSeal>

/**
 * Creates what seals and reads that header. `key` is known to the servers of one fleet alone. A seal
 * holds for one method, address and `Host` only: who saw one pass by can say nothing else with it.
 */
export function createClientSeal(key: string) {
  const sign = ({ method = '', url = '', headers }: SealedRequest, said: string) =>
    createHmac('sha256', key)
      .update(`forwarded\n${method} ${url}\n${headers.host ?? ''}\n${said}`)
      .digest()

  return {
    seal(request: SealedRequest, { ip, isSecure }: PassedClient): string {
      const said = `${ip};${isSecure ? 'https' : 'http'}`
      return `${said};${sign(request, said).toString('base64url')}`
    },
    /** Null: it came from the client itself, or from nobody that has the key. */
    read(request: SealedRequest): PassedClient | null {
      const header = request.headers[CLIENT_HEADER]
      if (typeof header !== 'string' || header.length > MAX_CHARACTERS) return null
      const [, said = '', ip = '', scheme = '', seal = ''] = FORM.exec(header) ?? []
      const [given, wanted] = [Buffer.from(seal, 'base64url'), sign(request, said)]
      if (given.length !== wanted.length || !timingSafeEqual(given, wanted)) return null
      return { ip, isSecure: scheme === 'https' }
    },
  }
}

const MAX_CHARACTERS = 200
const FORM = /^(([\d.a-fA-F:%\w]*);(https?));([\w-]{43})$/
