/** Files that servers of one fleet give each other by their digest: how one is asked for, and how it is answered. */
import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import * as http from 'node:http'
import * as https from 'node:https'
import { pipeline } from 'node:stream/promises'
import type { OpenSharedFile } from '#fleet/cluster/netboot-copy.ts'
import { Fault } from '#kit/foundation/fault.ts'
import {
  CLIENT_HEADER,
  createPassedReader,
  type ClientSeal,
  type PassedReader,
} from '#kit/web/http/client-seal.ts'
import type { Diversion } from '#kit/web/http/entrance.ts'

interface MemberFilesDependencies {
  /** Null: unknown yet, so nothing is asked for or answered. */
  seal(): ClientSeal | null
  /** PEM texts; undefined: Node's own authorities. */
  readonly authorities: string[] | undefined
  /** Null: no file with this digest. */
  find(sha256: string): Promise<string | null>
}

const PATH = '/cluster/netboot/'
const FORM = /^\/cluster\/netboot\/([0-9a-f]{64})$/
/** The seal is for this route alone, whoever leads. */
const TERM = 'netboot'
/** For the next byte. */
const STALL_MS = 15_000
const NOBODY = { ip: '', isSecure: false } as const

export function createMemberFiles({ seal, authorities, find }: MemberFilesDependencies) {
  let reader: { readonly of: ClientSeal; readonly read: PassedReader } | null = null

  function isSealed(request: http.IncomingMessage): boolean {
    const present = seal()
    if (present === null) return false
    if (reader?.of !== present) reader = { of: present, read: createPassedReader(present, TERM) }
    const client = reader.read(request)
    return client !== null && client !== 'stale'
  }

  const open: OpenSharedFile = async function* (url, { sha256, from }, signal) {
    const present = seal()
    if (present === null) throw new Fault('no-leader', 'the key of the fleet is not known yet')
    const answer = await ask(present, { url, path: `${PATH}${sha256}`, from, signal, authorities })
    const wanted = from === 0 ? [200] : [206]
    if (!wanted.includes(answer.statusCode ?? 0)) {
      answer.destroy()
      throw new Fault(
        'input-missing',
        REFUSALS[answer.statusCode ?? 0] ?? `it answered ${answer.statusCode}`,
      )
    }
    for await (const chunk of answer) yield chunk
  }

  const divert: Diversion = (request, response) => {
    const path = request.url?.split('?', 1)[0] ?? ''
    if (!path.startsWith(PATH)) return false
    void give(request, response, path)
    return true
  }

  async function give(request: http.IncomingMessage, response: http.ServerResponse, path: string) {
    const [, sha256 = ''] = FORM.exec(path) ?? []
    if (request.method !== 'GET' || sha256 === '') return refuse(response, 404)
    if (!isSealed(request)) return refuse(response, 403)
    try {
      const file = await find(sha256)
      if (file === null) return refuse(response, 404)
      await send(request, response, file)
    } catch {
      // The other server tries the next one, and does not take a part for the whole.
      response.destroy()
    }
  }

  return { open, divert }
}

function refuse(response: http.ServerResponse, status: number): void {
  response.writeHead(status, { 'content-length': 0 }).end()
}

async function send(
  { headers }: http.IncomingMessage,
  response: http.ServerResponse,
  path: string,
): Promise<void> {
  const { size } = await stat(path)
  const from = Number(/^bytes=(\d{1,15})-$/.exec(headers.range ?? '')?.[1] ?? 0)
  if (from > 0 && from >= size) return refuse(response, 416)
  response.writeHead(from === 0 ? 200 : 206, {
    'content-type': 'application/octet-stream',
    'content-length': size - from,
    ...(from === 0 ? {} : { 'content-range': `bytes ${from}-${size - 1}/${size}` }),
  })
  await pipeline(createReadStream(path, { start: from }), response)
}

const REFUSALS: Readonly<Record<number, string>> = {
  403: 'it does not know the key of this server: database.key must be the same on both',
  404: 'it does not have the file any more',
}

interface FileRequest {
  readonly url: string
  readonly path: string
  readonly from: number
  readonly signal: AbortSignal
  readonly authorities: string[] | undefined
}

async function ask(seal: ClientSeal, { url, path, from, signal, authorities }: FileRequest) {
  const address = new URL(url)
  const own = { method: 'GET', url: path, headers: { host: address.host } }
  const headers = {
    host: address.host,
    [CLIENT_HEADER]: seal.seal(own, NOBODY, TERM),
    ...(from === 0 ? {} : { range: `bytes=${from}-` }),
  }
  const { protocol, hostname, port } = address
  const parts = {
    host: hostname.replace(/^\[|\]$/g, ''),
    port,
    path,
    headers,
    signal,
    agent: false,
  } as const
  const trust = authorities === undefined ? {} : { ca: authorities }
  const request = protocol === 'http:' ? http.request(parts) : https.request({ ...parts, ...trust })
  request.setTimeout(STALL_MS, () => {
    request.destroy(new Error(`nothing came for ${STALL_MS / 1000} s`))
  })
  request.end()
  const [answer]: http.IncomingMessage[] = await once(request, 'response')
  if (answer === undefined) throw new Error('no answer')
  return answer
}
