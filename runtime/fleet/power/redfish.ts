/** The way over Redfish: sessions with a BMC, the machine's system and its boot device, and a virtual CD. */
import type { z } from 'zod'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { DocumentAnswer } from '#kit/net/json-client.ts'
import { isRedirect } from '#kit/net/rules/image-location.ts'
import {
  createBmcHttp,
  type BmcHttpDependencies,
  type BmcHttp,
  type BmcRequest,
} from './bmc-http.ts'
import type { PowerAnswer, PowerDriver, PowerVisit } from './driver.ts'
import type { BmcOf, Credential } from './rules/bmc.ts'
import {
  lasting,
  passing,
  quote,
  type BootOnce,
  type PowerAbout,
  type PowerPress,
  type PowerReading,
  type PowerTrouble,
} from './rules/power.ts'
import * as redfish from './rules/redfish.ts'

type Http = Omit<BmcHttpDependencies, 'signal'>

/** `credential` null: not needed. */
export function createRedfishDriver(
  bmc: BmcOf<'redfish'>,
  credential: Credential | null,
  given: Http,
): PowerDriver {
  const base = new URL(bmc.address.includes('://') ? bmc.address : `https://${bmc.address}`)
  const memory: RedfishMemory = { wantsSession: false }
  return {
    abilities: {
      reads: true,
      presses: ['on', 'off'],
      boots: ['network', 'http', 'cd'],
      confirmsBoot: true,
    },
    async open(signal) {
      const http = createBmcHttp(base, { ...given, signal })
      const client = await openRedfish(base, http, credential, memory)
      const found = client.ok ? await findSystem(client.value, bmc.system) : client
      if (client.ok && found.ok) return accept(createVisit(client.value, found.value, base, http))
      if (client.ok) await client.value.close()
      http.close()
      return found.ok ? refuse(NO_SYSTEM) : found
    },
  }
}

const NO_SYSTEM = lasting('answer', 'it lists no system', 'Check the address of its BMC.')

async function findSystem(client: RedfishClient, wanted: string | null): PowerAnswer<string> {
  const listed = await client.get(client.systems, redfish.MembersSchema)
  if (!listed.ok) return listed
  const paths = listed.value.value.Members.map((member) => member['@odata.id'])
  const named = paths.filter((path) => wanted === null || idOf(path) === wanted)
  const [only] = named
  if (only !== undefined && named.length === 1) return accept(only)
  if (paths.length === 0) return refuse(NO_SYSTEM)
  const names = quote(paths.map(idOf).join(', '))
  return refuse(lasting('answer', `its systems are ${names}`, 'Name one of them as its system.'))
}

const idOf = (path: string) => path.split('/').findLast((part) => part !== '') ?? path

function createVisit(
  client: RedfishClient,
  path: string,
  base: URL,
  http: { close(): void },
): PowerVisit {
  let task: string | null = null

  const readSystem = () => client.get(path, redfish.SystemSchema)

  async function readTask(): PowerAnswer<null> {
    if (task === null) return accept(null)
    const read = await client.get(task, redfish.TaskSchema)
    // If the task is gone, the state counts.
    const failure = read.ok ? redfish.findTaskFailure(read.value.value) : null
    if (failure === null) return accept(null)
    task = null
    return refuse(passing('refused', failure, 'Check the log of its BMC.'))
  }

  async function readState(): PowerAnswer<PowerReading> {
    const system = await readSystem()
    if (!system.ok) return system
    const checked = await readTask()
    return checked.ok ? accept(redfish.readPowerState(system.value.value)) : checked
  }

  async function press(wanted: PowerPress): PowerAnswer<null> {
    const system = await readSystem()
    if (!system.ok) return system
    const type = redfish.chooseReset(system.value.value, wanted)
    const target = system.value.value.Actions?.['#ComputerSystem.Reset'].target
    if (type === null)
      return refuse(lasting('unsupported', `it has no reset for ${wanted}`, OTHER_WAY))
    const sent = await client.send(target ?? `${path}/Actions/ComputerSystem.Reset`, {
      method: 'POST',
      body: { ResetType: type },
    })
    if (!sent.ok) return sent
    const { status, headers, bytes } = sent.value
    task = status === 202 ? redfish.findMade(headers.location, bytes, base) : null
    return accept(null)
  }

  async function setBoot(boot: BootOnce): PowerAnswer<null> {
    const inserted = boot.device === 'cd' ? await insertCd(client, path, boot.url) : accept(null)
    if (!inserted.ok) return inserted
    const set = await setAnywhere(client, path, boot)
    if (!set.ok) return set
    const read = await client.get(set.value, redfish.SystemSchema)
    if (!read.ok) return read
    const mismatch = redfish.findBootMismatch(read.value.value, boot)
    return mismatch === null ? accept(null) : refuse(passing('boot-lost', mismatch, SET_BY_HAND))
  }

  async function describe(): PowerAnswer<PowerAbout> {
    const system = await readSystem()
    if (!system.ok) return system
    const { Manufacturer, Model, Links } = system.value.value
    const [manager] = Links?.ManagedBy ?? []
    const read = manager && (await client.get(manager['@odata.id'], redfish.ManagerSchema))
    return accept({
      model: quote([Manufacturer, Model].filter(Boolean).join(' ')) || null,
      firmware: quote((read?.ok && read.value.value.FirmwareVersion) || '') || null,
      lacks: redfish.listLacking(system.value.value),
    })
  }

  return {
    readState,
    press,
    setBoot,
    describe,
    async [Symbol.asyncDispose]() {
      await client.close()
      http.close()
    },
  }
}

/** On the system, or its settings if the system refuses. Returns where to read it back. */
async function setAnywhere(client: RedfishClient, path: string, boot: BootOnce) {
  const set = await patchBoot(client, path, boot)
  if (set.ok || set.refusal.passes || set.refusal.kind !== 'refused') return set
  const system = await client.get(path, redfish.SystemSchema)
  const settings = system.ok ? system.value.value['@Redfish.Settings']?.SettingsObject : undefined
  return settings === undefined ? set : await patchBoot(client, settings['@odata.id'], boot)
}

/** With the entity tag if there is one; some BMCs want it strong, some want none. */
async function patchBoot(client: RedfishClient, path: string, boot: BootOnce): PowerAnswer<string> {
  const tried = new Set<string>()
  for (const shape of TAGS) {
    const read = await client.get(path, redfish.SystemSchema)
    if (!read.ok) return read
    const { value: system, etag } = read.value
    if (redfish.lacksBootDevice(system, boot.device)) {
      return refuse(lasting('unsupported', 'it does not list this boot device', OTHER_WAY))
    }
    const tag = shape(etag, system['@odata.etag'] ?? '')
    if (tried.has(tag)) continue
    tried.add(tag)
    const headers = tag === '' ? {} : { 'if-match': tag }
    const sent = await patchOne(client, path, headers, redfish.listBootOverrides(system, boot))
    if (sent.ok) return accept(path)
    if (!/answered 4(?:12|28)/.test(sent.refusal.seen)) return sent
  }
  return refuse(passing('refused', 'it accepts no entity tag', UPDATE))
}

async function patchOne(
  client: RedfishClient,
  path: string,
  headers: Readonly<Record<string, string>>,
  [body, ...others]: readonly object[],
): PowerAnswer<unknown> {
  const sent = await client.send(path, { method: 'PATCH', headers, body: body ?? {} })
  if (sent.ok || others.length === 0) return sent
  const isForBody = !sent.refusal.passes && sent.refusal.kind === 'refused'
  return isForBody ? await patchOne(client, path, headers, others) : sent
}

/** Header and document each say a tag, and either may be wrong. */
const TAGS: readonly ((inHeader: string, inDocument: string) => string)[] = [
  (inHeader, inDocument) => inHeader || inDocument,
  (inHeader, inDocument) => makeStrong(inHeader || inDocument),
  (inHeader, inDocument) => inDocument || inHeader,
  (inHeader, inDocument) => makeStrong(inDocument || inHeader),
  () => '',
]

const makeStrong = (etag: string) => etag.replace(/^W\//, '')

const OTHER_WAY = 'Choose another type.'
const UPDATE = 'Update its firmware.'
const SET_BY_HAND = 'Set the network as first boot device in its firmware, or update its BMC.'

interface Drive {
  readonly path: string
  readonly media: redfish.Media
}

/** Ejects another one first, and reads it back. */
async function insertCd(
  client: RedfishClient,
  system: string,
  url: string | null,
): PowerAnswer<null> {
  if (url === null) return refuse(lasting('unsupported', 'no ISO was named', NAME_ONE))
  const found = await findDrive(client, system)
  if (!found.ok) return found
  const { path, media } = found.value
  if (media.Image === url && media.Inserted !== false) return accept(null)
  for (const change of listChanges(found.value, url)) {
    const sent = await client.send(change.path, { method: 'POST', body: change.body })
    if (!sent.ok) return sent
  }
  const read = await client.get(path, redfish.MediaSchema)
  return read.ok ? checkImage(read.value.value, url) : read
}

function checkImage({ Image }: redfish.Media, url: string): Result<null, PowerTrouble> {
  if (Image === url) return accept(null)
  const seen = `the BMC reports the virtual CD ${quote(Image ?? 'nothing')}`
  return refuse(passing('boot-lost', seen, REACH))
}

function listChanges({ path, media: { Actions, Inserted } }: Drive, url: string) {
  const ejecting = {
    path:
      Actions?.['#VirtualMedia.EjectMedia']?.target ?? `${path}/Actions/VirtualMedia.EjectMedia`,
    body: {},
  }
  const inserting = {
    path:
      Actions?.['#VirtualMedia.InsertMedia']?.target ?? `${path}/Actions/VirtualMedia.InsertMedia`,
    body: { Image: url, Inserted: true, WriteProtected: true },
  }
  return Inserted === true ? [ejecting, inserting] : [inserting]
}

async function findDrive(client: RedfishClient, system: string): PowerAnswer<Drive> {
  const places = await listPlaces(client, system)
  if (!places.ok) return places
  for (const place of places.value) {
    const listed = await client.get(place, redfish.MembersSchema)
    for (const member of listed.ok ? listed.value.value.Members.slice(0, MAX_DRIVES) : []) {
      const path = member['@odata.id']
      const media = await client.get(path, redfish.MediaSchema)
      if (media.ok && isCd(media.value.value)) return accept({ path, media: media.value.value })
    }
  }
  return refuse(lasting('unsupported', 'it has no virtual CD drive', FROM_NETWORK))
}

/** The collection is the system's or a manager's. */
async function listPlaces(client: RedfishClient, path: string): PowerAnswer<readonly string[]> {
  const system = await client.get(path, redfish.SystemSchema)
  if (!system.ok) return system
  const { VirtualMedia, Links } = system.value.value
  const links = [VirtualMedia]
  for (const manager of Links?.ManagedBy ?? []) {
    const read = await client.get(manager['@odata.id'], redfish.ManagerSchema)
    if (read.ok) links.push(read.value.value.VirtualMedia)
  }
  return accept(links.flatMap((link) => link?.['@odata.id'] ?? []))
}

const isCd = ({ MediaTypes = [] }: redfish.Media) =>
  MediaTypes.some((type) => type === 'CD' || type === 'DVD')

const MAX_DRIVES = 20
const NAME_ONE = 'Name the address of an ISO.'
const REACH = 'Check that its BMC can fetch that address.'
const FROM_NETWORK = 'Boot from the network instead.'

interface RedfishClient {
  readonly systems: string
  get<T>(
    path: string,
    schema: z.ZodType<T>,
  ): PowerAnswer<{ readonly value: T; readonly etag: string }>
  send(path: string, request: BmcRequest): PowerAnswer<DocumentAnswer>
  /** Best effort, twice. */
  close(): Promise<void>
}

const SESSIONS = '/redfish/v1/SessionService/Sessions'
const MAX_REDIRECTS = 3

/** From one session to the next within a request. */
interface RedfishMemory {
  /** A refused password without a session is not tried again: BMCs lock accounts. */
  wantsSession: boolean
}

/** Opens a session, or sends the password with each request if the BMC has no room for one. */
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
    const refusal = redfish.judgeRefusal(status, hidePassword(bytes, credential?.password ?? ''))
    // A restarted BMC has forgotten its sessions.
    if (status === 401 && isOpen) return refuse(ENDED)
    if (status !== 401 || noSession === null) return refuse(refusal)
    // A full BMC is the reason.
    memory.wantsSession = true
    return refuse(noSession)
  }

  async function get<T>(path: string, schema: z.ZodType<T>) {
    const asked = await send(path, { method: 'GET' })
    if (!asked.ok) return asked
    const value = redfish.parseDocument(schema, asked.value.bytes)
    if (value === null) return refuse(passing('answer', `${path} is invalid`, UPDATE_OR_OTHER))
    return accept({ value, etag: asked.value.headers.etag ?? '' })
  }

  const root = await get('/redfish/v1/', redfish.RootSchema)
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
  readonly headers: Readonly<Record<string, string>>
  /** The session's path; null: none to end. */
  readonly session: string | null
  /** Why there was no room; null: there was, or the BMC has no sessions. */
  readonly noSession: PowerTrouble | null
}

const NO_LOGIN: RedfishLogin = { headers: {}, session: null, noSession: null }

/** Without room for a session, a password in each request may do. */
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
    session: made.ok ? redfish.findMade(made.value.headers.location, made.value.bytes, base) : null,
    noSession: made.ok || !made.refusal.passes ? null : made.refusal,
  })
}

/** Some BMCs repeat the refused value, and their words go on record. */
function hidePassword(bytes: Buffer, password: string): Buffer {
  if (password === '') return bytes
  const inJson = JSON.stringify(password).slice(1, -1)
  return Buffer.from(bytes.toString('utf8').replaceAll(inJson, '…').replaceAll(password, '…'))
}

const isSuccess = (status: number) => status >= 200 && status < 300

const HAS_NO_ROOM: ReadonlySet<string> = new Set(['sessions', 'unsupported', 'refused'])

const basic = ({ user, password }: Credential) =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`

/** Some redirect a change to the same path with a final slash; that is followed. */
const nameWithoutSlash = ({ pathname, search }: URL) => `${pathname.replace(/\/$/, '')}${search}`

const UPDATE_OR_OTHER = 'Update its firmware, or use another type of power control.'
const ELSEWHERE = lasting(
  'address',
  'it redirects to another address',
  'Enter the address at which its BMC answers itself.',
)
const ENDED = passing('sessions', 'its session ended early', 'Check whether its BMC restarts.')
