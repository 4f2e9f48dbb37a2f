/** The way over Redfish: `ComputerSystem.Reset`, the boot override, virtual media. */
import { accept, refuse } from '../../kit/foundation/result.ts'
import type { PowerAnswer, PowerDriver, PowerVisit } from './driver.ts'
import { createBmcHttp, type BmcHttpDependencies } from './bmc-http.ts'
import { openRedfish, type RedfishClient, type RedfishMemory } from './redfish-client.ts'
import { insertCd } from './redfish-media.ts'
import type { BmcOf, Credential } from './rules/bmc.ts'
import { lasting, passing, quote } from './rules/power.ts'
import type { BootOnce, PowerPress, PowerReading } from './rules/power.ts'
import * as redfish from './rules/redfish.ts'

type Http = Omit<BmcHttpDependencies, 'signal'>

/** Creates the driver of one BMC. `credential` null: it asks for none. */
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
    // Where the task is gone, what counts is the state.
    const failure = read.ok ? redfish.findTaskFailure(read.value.value) : null
    if (failure === null) return accept(null)
    task = null
    return refuse(passing('refused', failure, 'Look at the log of its BMC.'))
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
    if (type === null) return refuse(lasting('unsupported', `it has no reset for ${wanted}`, OTHER))
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

  return {
    readState,
    press,
    setBoot,
    async [Symbol.asyncDispose]() {
      await client.close()
      http.close()
    },
  }
}

/** At the system, or where its settings are where it refuses that. Tells where it is read back. */
async function setAnywhere(client: RedfishClient, path: string, boot: BootOnce) {
  const set = await patchBoot(client, path, boot)
  if (set.ok || set.refusal.passes || set.refusal.kind !== 'refused') return set
  const system = await client.get(path, redfish.SystemSchema)
  const settings = system.ok ? system.value.value['@Redfish.Settings']?.SettingsObject : undefined
  return settings === undefined ? set : await patchBoot(client, settings['@odata.id'], boot)
}

/** It is sent with the entity tag where the BMC has one; some want it strong, some want none. */
async function patchBoot(client: RedfishClient, path: string, boot: BootOnce): PowerAnswer<string> {
  const tried = new Set<string>()
  for (const shape of TAGS) {
    const read = await client.get(path, redfish.SystemSchema)
    if (!read.ok) return read
    const { value: system, etag } = read.value
    if (redfish.lacksBootDevice(system, boot)) {
      return refuse(lasting('unsupported', 'it does not list this boot device', OTHER))
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

/** Sends the next of the bodies where one is refused for what is in it. */
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

/** `inHeader` and `inDocument` are what it says of its tag; either may be wrong. */
const TAGS: readonly ((inHeader: string, inDocument: string) => string)[] = [
  (inHeader, inDocument) => inHeader || inDocument,
  (inHeader, inDocument) => makeStrong(inHeader || inDocument),
  (inHeader, inDocument) => inDocument || inHeader,
  (inHeader, inDocument) => makeStrong(inDocument || inHeader),
  () => '',
]

const makeStrong = (etag: string) => etag.replace(/^W\//, '')

const OTHER = 'Use another way to this machine.'
const UPDATE = 'Look for an update of its firmware.'
const SET_BY_HAND = 'Set the network as first boot device in its firmware, or update its BMC.'
