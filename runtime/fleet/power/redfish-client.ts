/** Redfish requests with one session: opened, used and always ended; redirects stay on the BMC. */
import type { z } from 'zod'
import { accept, refuse } from '../../kit/foundation/result.ts'
import { isRedirect } from '../../kit/net/rules/redirect.ts'
import type { DocumentAnswer } from '../../kit/net/json-client.ts'
import type { BmcHttp, BmcRequest } from './bmc-http.ts'
import type { Credential } from './rules/bmc.ts'
import { lasting, passing, type PowerTrouble } from './rules/power.ts'
import { findMade, judgeRefusal, parseDocument, RootSchema } from './rules/redfish.ts'
import type { PowerAnswer } from './driver.ts'

export interface RedfishClient {
  /** The path of the collection of systems. */
  readonly systems: string
  /** Reads a document. */
  get<T>(
    path: string,
    schema: z.ZodType<T>,
  ): PowerAnswer<{ readonly value: T; readonly etag: string }>
  /** Changes something; any success is accepted. */
  send(path: string, request: BmcRequest): PowerAnswer<DocumentAnswer>
  /** Ends the session; best effort, twice. */
  close(): Promise<void>
}

const SESSIONS = '/redfish/v1/SessionService/Sessions'
const MAX_REDIRECTS = 3

/** What is remembered from one session to the next within a request. */
export interface RedfishMemory {
  /** A password without a session was refused: it is not tried again, as BMCs lock accounts. */
  wantsSession: boolean
}

/** Opens a session, or does with a password in each request where the BMC has no room for one. */
export async function openRedfish(
  base: URL,
  http: BmcHttp,
  credential: Credential | null,
  memory: RedfishMemory = { wantsSession: false },
): PowerAnswer<RedfishClient> {
  let authorization: Readonly<Record<string, string>> = {}
  let isOpen = false
  let noSession: PowerTrouble | null = null

  async function ask(path: string, request: BmcRequest): PowerAnswer<DocumentAnswer> {
    let url = new URL(path, base)
    for (let hops = 0; hops <= MAX_REDIRECTS; hops += 1) {
      const headers = { 'odata-version': '4.0', ...authorization, ...request.headers }
      const asked = await http.ask(url, { ...request, headers })
      if (!asked.ok || !isRedirect(asked.value.status)) return asked
      const next = URL.parse(asked.value.headers.location ?? '', url)
      if (next?.origin !== base.origin) return refuse(ELSEWHERE)
      const isSame = asked.value.status !== 303 && nameWithoutSlash(next) === nameWithoutSlash(url)
      if (request.method !== 'GET' && !isSame) return refuse(ELSEWHERE)
      url = next
    }
    return refuse(ELSEWHERE)
  }

  async function send(path: string, request: BmcRequest): PowerAnswer<DocumentAnswer> {
    const asked = await ask(path, request)
    if (!asked.ok || isSuccess(asked.value.status)) return asked
    const { status, bytes } = asked.value
    const refusal = judgeRefusal(status, hidePassword(bytes, credential?.password ?? ''))
    // A BMC that restarted knows its sessions no more.
    if (status === 401 && isOpen) return refuse(ENDED)
    if (status !== 401 || noSession === null) return refuse(refusal)
    // Where it is full, that is why.
    memory.wantsSession = true
    return refuse(noSession)
  }

  async function get<T>(path: string, schema: z.ZodType<T>) {
    const asked = await send(path, { method: 'GET' })
    if (!asked.ok) return asked
    const value = parseDocument(schema, asked.value.bytes)
    if (value === null) return refuse(passing('answer', `${path} is not as it must be`, UPDATE))
    return accept({ value, etag: asked.value.headers.etag ?? '' })
  }

  const root = await get('/redfish/v1/', RootSchema)
  if (!root.ok) return root
  const { Systems, Links } = root.value.value
  const login =
    credential === null
      ? accept(NO_LOGIN)
      : await logIn(send, base, Links?.Sessions?.['@odata.id'] ?? SESSIONS, credential)
  if (!login.ok) return login
  noSession = login.value.noSession
  if (noSession !== null && memory.wantsSession) return refuse(noSession)
  authorization = login.value.headers
  isOpen = 'x-auth-token' in authorization
  let { session } = login.value

  async function close(): Promise<void> {
    if (session === null) return
    const path = session
    session = null
    const ended = await send(path, { method: 'DELETE' })
    if (!ended.ok && ended.refusal.passes) await send(path, { method: 'DELETE' })
  }

  return accept({ systems: Systems['@odata.id'], get, send, close })
}

interface RedfishLogin {
  /** What goes with each request. */
  readonly headers: Readonly<Record<string, string>>
  /** The path of the session; null: there is none to end. */
  readonly session: string | null
  /** Why there was no room for one just now; null: there was, or it offers none. */
  readonly noSession: PowerTrouble | null
}

const NO_LOGIN: RedfishLogin = { headers: {}, session: null, noSession: null }

/** Where there is no room for a session, a password in each request may do. */
async function logIn(
  send: RedfishClient['send'],
  base: URL,
  path: string,
  credential: Credential,
): PowerAnswer<RedfishLogin> {
  const body = { UserName: credential.user, Password: credential.password }
  const made = await send(path, { method: 'POST', body })
  if (!made.ok && !HAS_NO_ROOM.has(made.refusal.kind)) return made
  const token = made.ok ? made.value.headers['x-auth-token'] : undefined
  return accept({
    headers:
      typeof token === 'string' ? { 'x-auth-token': token } : { authorization: basic(credential) },
    session: made.ok ? findMade(made.value.headers.location, made.value.bytes, base) : null,
    noSession: made.ok || !made.refusal.passes ? null : made.refusal,
  })
}

/** Some repeat the value that they refuse, and what they say goes on record. */
function hidePassword(bytes: Buffer, password: string): Buffer {
  if (password === '') return bytes
  const inJson = JSON.stringify(password).slice(1, -1)
  return Buffer.from(bytes.toString('utf8').replaceAll(inJson, '…').replaceAll(password, '…'))
}

const isSuccess = (status: number) => status >= 200 && status < 300

/** Kinds of refusals of a session after which a password in each request may do. */
const HAS_NO_ROOM: ReadonlySet<string> = new Set(['sessions', 'unsupported', 'refused'])

const basic = ({ user, password }: Credential) =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`

/** Some answer a change by the same path with a slash behind it: it may be sent there. */
const nameWithoutSlash = ({ pathname, search }: URL) => `${pathname.replace(/\/$/, '')}${search}`

const UPDATE = 'Look for an update of its firmware, or use another way.'
const ELSEWHERE = lasting(
  'address',
  'it redirects to another address, which is not followed',
  'Enter the address at which its BMC answers itself.',
)
const ENDED = passing('sessions', 'its session ended early', 'Look whether its BMC restarts.')
