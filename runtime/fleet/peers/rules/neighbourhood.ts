/** Whether a machine may read an image from the others of its site, and which site that is. */
import { renderCacheBase } from '#engine/catalog/rules/blob-address.ts'
import type { CatalogEntry } from '#engine/catalog/rules/catalog.ts'
import { isAt, type NearMachine } from '#engine/catalog/rules/near-sites.ts'

type NearImage = Pick<CatalogEntry, 'url' | 'sha256' | 'indexSha256'>

interface PeerSite {
  /** `[peers]`; absent: no handing on. */
  readonly peers?: { readonly enabled: boolean; readonly sites: readonly string[] } | undefined
  /** Null: no cache service. */
  readonly cacheUrl: string | null
}

interface Neighbourhood {
  readonly site: string
  readonly sha256: string
}

/** Null: there are none, or the image is not handed on. */
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

/** Plain HTTP from the cache with a frame index: its digest, in the plan, shows wrong bytes. */
const isHandedOn = ({ url, indexSha256 }: NearImage, cacheUrl: string | null): boolean =>
  cacheUrl !== null &&
  cacheUrl.startsWith('http:') &&
  url.startsWith(`${renderCacheBase(cacheUrl)}/`) &&
  Boolean(indexSha256)

/** The first configured site that has the machine; if none is set, its /24. */
function findSite(machine: NearMachine, sites: readonly string[]): string | null {
  if (sites.length > 0) return sites.find((site) => isAt(machine, site)) ?? null
  const [, network] = /^((?:\d{1,3}\.){3})\d{1,3}$/.exec(machine.ip ?? '') ?? []
  return network === undefined ? null : `${network}0/24`
}
