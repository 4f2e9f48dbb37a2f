/** Whether a machine may read an image from the others of its site, and which site that is. */
import { renderCacheBase } from '../../../engine/catalog/rules/blob-address.ts'
import type { CatalogEntry } from '../../../engine/catalog/rules/catalog.ts'
import { isAt, type NearMachine } from '../../../engine/catalog/rules/near-sites.ts'

type NearImage = Pick<CatalogEntry, 'url' | 'sha256' | 'indexSha256'>

interface PeerSite {
  /** `[peers]`; absent: machines hand nothing on. */
  readonly peers?: { readonly enabled: boolean; readonly sites: readonly string[] } | undefined
  /** The address of the cache service; null: there is none. */
  readonly cacheUrl: string | null
}

/** The machines that may read one image from each other. */
interface Neighbourhood {
  readonly site: string
  /** The digest of the image. */
  readonly sha256: string
}

/**
 * Finds the machines from which one may read an image: those of its site. Null: there are none, or
 * the image is not handed on.
 */
export function findNeighbourhood(
  image: NearImage,
  machine: NearMachine,
  { peers, cacheUrl }: PeerSite,
): Neighbourhood | null {
  const { sha256 } = image
  if (peers?.enabled !== true || sha256 === null || !isHandedOn(image, cacheUrl)) return null
  const site = findSite(machine, peers.sites)
  return site === null ? null : { site, sha256 }
}

/**
 * It comes from the cache service over plain HTTP, and an index of frames, whose digest the plan
 * names, finds whoever hands on another byte.
 */
const isHandedOn = ({ url, indexSha256 }: NearImage, cacheUrl: string | null): boolean =>
  cacheUrl !== null &&
  cacheUrl.startsWith('http:') &&
  url.startsWith(`${renderCacheBase(cacheUrl)}/`) &&
  Boolean(indexSha256)

/**
 * The first site that the machine is in; where none are set, the network of the 256 addresses around
 * its own.
 */
function findSite(machine: NearMachine, sites: readonly string[]): string | null {
  if (sites.length > 0) return sites.find((site) => isAt(machine, site)) ?? null
  const [, network] = /^((?:\d{1,3}\.){3})\d{1,3}$/.exec(machine.ip ?? '') ?? []
  return network === undefined ? null : `${network}0/24`
}
