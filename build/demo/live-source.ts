/** Decides where the live system comes from that the demo's machine boots. */

export interface ReleaseSite {
  readonly url: string
  readonly repository: string
  readonly tag: string
}

export interface LiveFacts {
  /** The version of a complete set in `dist/`; null: there is none. */
  readonly built: string | null
  /** The version of a complete set in the demo's own state, from an earlier run. */
  readonly kept: string | null
  /** Null: none is set. */
  readonly site: ReleaseSite | null
  readonly isRoot: boolean
  /** Why none can be built on this host; null: it can. */
  readonly obstacle: string | null
}

export type LiveSource =
  | { readonly from: 'dist' | 'state'; readonly version: string }
  | { readonly from: 'site'; readonly site: ReleaseSite }
  | { readonly from: 'build' }
  | { readonly from: 'nowhere'; readonly advice: string }

/** The script that builds one, and its arguments. */
export const BUILD_ARGUMENTS = ['build:images', 'netboot-pc'] as const
const BUILD_COMMAND = `npx pnpm ${BUILD_ARGUMENTS.join(' ')}`
const SITE_ADVICE =
  'Name a site that hosts releases: FLASHER_RELEASES_BASE_URL and FLASHER_BOOT_RELEASE_REPO'

/** Decides the source. `dist/` comes first: who builds wants to see what was built. */
export function decideLiveSource(facts: LiveFacts): LiveSource {
  const { built, kept, site, isRoot, obstacle } = facts
  if (built !== null) return { from: 'dist', version: built }
  if (site !== null)
    return kept === null ? { from: 'site', site } : { from: 'state', version: kept }
  if (kept !== null) return { from: 'state', version: kept }
  if (obstacle !== null) return { from: 'nowhere', advice: `${SITE_ADVICE} (${obstacle}).` }
  return isRoot
    ? { from: 'build' }
    : {
        from: 'nowhere',
        advice: `Build a live system, once, in some five minutes: sudo ${BUILD_COMMAND}`,
      }
}
