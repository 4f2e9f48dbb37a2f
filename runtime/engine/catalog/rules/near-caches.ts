/** Which caches a machine asks for its image, and in which order (docs/decisions/0077-sources-in-their-order.md). */
import { createHash } from 'node:crypto'
import { renderCacheBase, VERSION_PARAMETER } from './cache-entry.ts'
import type { CatalogEntry } from './catalog.ts'
import { isAddressIn } from '#kit/net/rules/direct-host.ts'

interface SiteCaches {
  /** `sources.caches`: an address, then networks and labels of the machines near it. */
  readonly caches: readonly string[]
  /** Null: there is none. */
  readonly cacheUrl: string | null
}

/** A machine that finds none of them there asks the cache service. */
const MAX_SOURCES = 6

/**
 * The machine's own site first, then caches for all. In a site the digest decides, so that each
 * image is in one cache, and adding or removing one moves its own share alone. None without a
 * digest: the version at another cache could be any.
 */
export function listSources(
  { url, sha256 }: Pick<CatalogEntry, 'url' | 'sha256'>,
  { caches, cacheUrl }: SiteCaches,
  machine: NearMachine,
): readonly string[] {
  const base = cacheUrl === null ? null : `${renderCacheBase(cacheUrl)}/`
  if (base === null || !url.startsWith(base) || sha256 === null) return []
  const path = url.slice(base.length) + renderVersion(url, sha256)
  const known = caches.map(parseSiteCache)
  const near = known.filter(({ sites }) => sites.some((site) => isAt(machine, site)))
  const open = known.filter(({ sites }) => sites.length === 0)
  const bases = [...rank(near, sha256), ...rank(open, sha256)].map((each) => each.base)
  return [...new Set(bases)].slice(0, MAX_SOURCES).map((each) => `${each}/${path}`)
}

/** Under this address other programs keep this version, or none. */
const renderVersion = (url: string, sha256: string) =>
  `${url.includes('?') ? '&' : '?'}${VERSION_PARAMETER}=${sha256}`

interface SiteCache {
  readonly base: string
  readonly sites: readonly string[]
}

function parseSiteCache(text: string): SiteCache {
  const [base = '', ...sites] = text.trim().split(' ')
  return {
    base: renderCacheBase(base),
    sites: sites
      .join(' ')
      .split(';')
      .map((site) => site.trim())
      .filter(Boolean),
  }
}

/** Rendezvous hashing: each cache draws a number for the digest, and the highest is asked first. */
const rank = (caches: readonly SiteCache[], digest: string): readonly SiteCache[] =>
  caches
    .map((cache) => ({
      cache,
      draw: createHash('sha256').update(`${cache.base}\n${digest}`).digest('hex'),
    }))
    .toSorted((a, b) => (a.draw < b.draw ? 1 : -1))
    .map(({ cache }) => cache)

// Which sites a machine is in: a site is a network, an address or a label.

interface NearMachine {
  /** As the server sees it; null: unknown. */
  readonly ip: string | null
  readonly labels: readonly string[]
}

/** Labels ignore case. */
const isAt = ({ ip, labels }: NearMachine, site: string): boolean =>
  labels.some((label) => label.toLowerCase() === site.toLowerCase()) ||
  (ip !== null && isAddressIn(ip, site))
