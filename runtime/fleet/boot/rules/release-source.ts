/** Splits the address of a repository into the site that hosts its releases and the repository there. */

export interface ReleaseSource {
  readonly site: string
  readonly repository: string
}

/** `https://host/owner/name` (or a page below it) is split, unless `repository` is given, too. */
export function splitReleaseSource(site: string, repository: string): ReleaseSource {
  const given = { site: site.trim(), repository: repository.trim() }
  const url = given.repository === '' ? URL.parse(given.site) : null
  const [, found] = /^\/([\w.-]+\/[\w.-]+?)(?:\.git)?(?:\/.*)?$/.exec(url?.pathname ?? '') ?? []
  return url === null || found === undefined ? given : { site: url.origin, repository: found }
}

const USUAL_SITE = 'https://github.com'

/** `repository`: package.json's, `git+https://…/owner/name.git` or `owner/name`; null: none. */
export function proposeSource(repository: string | null): ReleaseSource {
  const address = (repository ?? '').replace(/^(?:git\+|github:)/, '')
  const short = /^[\w.-]+\/[\w.-]+$/.test(address)
  if (short) return { site: USUAL_SITE, repository: address }
  const found = splitReleaseSource(address, '')
  return /^https?:/.test(found.site) && found.repository !== ''
    ? found
    : { site: USUAL_SITE, repository: '' }
}

/** A proposed repository counts only for its own site. */
export const completeSource = (set: ReleaseSource, proposed: ReleaseSource): ReleaseSource => ({
  site: set.site || proposed.site,
  repository:
    set.repository || (set.site === '' || set.site === proposed.site ? proposed.repository : ''),
})
