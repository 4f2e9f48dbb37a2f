/** The client of a request that came by way of another server: who it is, and the proof that a server of ours says so, now. */
import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { createSpentNumbers } from './spent-numbers.ts'

/** It is believed only with its seal; anybody may send the header. */
export const CLIENT_HEADER = 'flasher-client'

/** Said to a server that took this one for the leader, or passed on what is no longer its leader's to believe. */
export const NOT_LEADING = 421

export interface PassedClient {
  /** Empty: that server did not know it. */
  readonly ip: string
  /** Whether it spoke TLS to that server. */
  readonly isSecure: boolean
}

type SealedRequest = Pick<IncomingMessage, 'method' | 'url' | 'headers'>

export type ClientSeal = ReturnType<typeof createClientSeal>

interface SealKeys {
  /** The text of `[database] key`; empty: none is set. */
  readonly key: string
  /** The random name of the database, which its servers know, and who reads a copy of their state. */
  readonly cluster: string
}

/**
 * A seal holds for one method, address and `Host` only, for one leadership, and once
 * (`createPassedReader`).
 */
export function createClientSeal({ key, cluster }: SealKeys) {
  const derived =
    key === '' ? cluster : Buffer.from(hkdfSync('sha256', key, cluster, 'flasher: clients', 32))
  const sender = randomBytes(12).toString('base64url')
  let number = 0
  const sign = ({ method = '', url = '', headers }: SealedRequest, said: string) =>
    createHmac('sha256', derived)
      .update(`forwarded\n${method} ${url}\n${headers.host ?? ''}\n${said}`)
      .digest()

  return {
    /** `term`: of the leader that the request goes to. Each seal is made for one try. */
    seal(request: SealedRequest, { ip, isSecure }: PassedClient, term: string): string {
      number += 1
      const said = `${ip};${isSecure ? 'https' : 'http'};${term};${sender};${number}`
      return `${said};${sign(request, said).toString('base64url')}`
    },
    /** Null: it came from the client itself, or from nobody that has the key. Whether it is new is not looked at. */
    read(request: SealedRequest): Sealed | null {
      const header = request.headers[CLIENT_HEADER]
      if (typeof header !== 'string' || header.length > MAX_CHARACTERS) return null
      const [, said, given] = FORM.exec(header) ?? []
      if (said === undefined || given === undefined) return null
      const isOurs = timingSafeEqual(Buffer.from(given, 'base64url'), sign(request, said))
      return isOurs ? parseSaid(said) : null
    },
  }
}

interface Sealed {
  readonly client: PassedClient
  readonly term: string
  /** Random for each start of a server, which counts its seals. */
  readonly sender: string
  readonly number: number
}

const MAX_CHARACTERS = 200
const FORM = /^([\d.a-fA-F:%\w]*;https?;\w{1,20};[\w-]{16};\d{1,15});([\w-]{43})$/

/** What our own server said, in the form of `FORM`. */
function parseSaid(said: string): Sealed {
  const [ip = '', scheme = '', term = '', sender = '', number = ''] = said.split(';')
  return { client: { ip, isSecure: scheme === 'https' }, term, sender, number: Number(number) }
}

/** `stale`: a server of ours sealed it, for another leader, or it was here before. */
export type PassedReader = (request: SealedRequest) => PassedClient | 'stale' | null

/** Each seal is read once. */
export function createPassedReader(seal: ClientSeal, term: string): PassedReader {
  const spend = createSpentNumbers()
  return (request) => {
    const sealed = seal.read(request)
    if (sealed === null) return null
    return sealed.term === term && spend(sealed.sender, sealed.number) ? sealed.client : 'stale'
  }
}
