/** Puts an ISO into a virtual CD drive of a BMC, which fetches it by itself. */
import { accept, refuse, type Result } from '../../kit/foundation/result.ts'
import type { RedfishClient } from './redfish-client.ts'
import { lasting, passing, quote, type PowerTrouble } from './rules/power.ts'
import * as redfish from './rules/redfish.ts'
import type { PowerAnswer } from './driver.ts'

interface Drive {
  readonly path: string
  readonly media: redfish.Media
}

/** Inserts the ISO at `url` and reads it back; another one is ejected first. */
export async function insertCd(
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
  const seen = `its virtual CD reads back as ${quote(Image ?? 'nothing')}`
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
  return refuse(lasting('unsupported', 'it has no virtual CD drive', OTHER))
}

/** The collection is the system's, or that of a manager. */
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
const OTHER = 'Boot from the network instead.'
