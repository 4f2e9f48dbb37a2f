/** Splits the address of a repository into the site that hosts its releases and the repository there. */

interface ReleaseSource {
  readonly site: string
  readonly repository: string
}

/**
 * Splits `https://host/owner/name`, perhaps with a page of it behind, into a site and a repository;
 * where a repository is given as well, the address is the site's.
 */
export function splitReleaseSource(site: string, repository: string): ReleaseSource {
  const given = { site: site.trim(), repository: repository.trim() }
  const url = given.repository === '' ? URL.parse(given.site) : null
  const [, found] = /^\/([\w.-]+\/[\w.-]+?)(?:\.git)?(?:\/.*)?$/.exec(url?.pathname ?? '') ?? []
  return url === null || found === undefined ? given : { site: url.origin, repository: found }
}
