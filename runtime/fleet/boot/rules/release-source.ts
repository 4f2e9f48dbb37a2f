/** Splits the address of a repository into the site that hosts its releases and the repository there. */

export interface ReleaseSource {
  readonly site: string
  readonly repository: string
}

/**
 * `https://host/owner/name`, perhaps with a page of it behind, is a site and a repository; where a
 * repository is given as well, the address is the site's.
 */
export function splitReleaseSource(site: string, repository: string): ReleaseSource {
  const given = { site: site.trim(), repository: repository.trim() }
  const url = given.repository === '' ? URL.parse(given.site) : null
  const [, found] = /^\/([\w.-]+\/[\w.-]+?)(?:\.git)?(?:\/.*)?$/.exec(url?.pathname ?? '') ?? []
  return url === null || found === undefined ? given : { site: url.origin, repository: found }
}

/** Where nearly every project has its releases. */
const USUAL_SITE = 'https://github.com'

/**
 * For who has set neither. `repository` is what package.json says, such as
 * `git+https://github.com/owner/name.git` or `owner/name`; null proposes the usual site alone.
 */
export function proposeSource(repository: string | null): ReleaseSource {
  const address = (repository ?? '').replace(/^(?:git\+|github:)/, '')
  const short = /^[\w.-]+\/[\w.-]+$/.test(address)
  if (short) return { site: USUAL_SITE, repository: address }
  const found = splitReleaseSource(address, '')
  return /^https?:/.test(found.site) && found.repository !== ''
    ? found
    : { site: USUAL_SITE, repository: '' }
}

/** A repository is proposed only for the site that has it. */
export const completeSource = (set: ReleaseSource, proposed: ReleaseSource): ReleaseSource => ({
  site: set.site || proposed.site,
  repository:
    set.repository || (set.site === '' || set.site === proposed.site ? proposed.repository : ''),
})
