/** Package sources for any Debian release, made from those of this host: nothing here names a mirror. */

/** A repository that the host's apt takes an index from. */
interface AptTarget {
  readonly uri: string
  readonly codename: string
}

interface SourcesOptions {
  readonly targets: readonly AptTarget[]
  /** The release that this host runs, by its code name. */
  readonly host: string
  readonly suite: string
  readonly backports?: boolean
}

type Sources =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly why: string }

/** The format that `apt-get indextargets --format` takes; `parseTargets` reads the rows. */
export const TARGET_FORMAT = '$(REPO_URI)|$(CODENAME)|$(COMPONENT)'

/** Signs every Debian release since 2013; package debian-archive-keyring. */
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg'
/** The live system needs firmware, whatever the host's sources include. */
const COMPONENTS = 'main non-free-firmware'
const ROLLING: readonly string[] = ['sid', 'unstable']

/** Parses what apt prints in the form of `TARGET_FORMAT`, and takes the component `main` alone. */
export function parseTargets(rows: string): readonly AptTarget[] {
  return rows.split('\n').flatMap((row) => {
    const [uri = '', codename = '', component] = row.split('|')
    return component === 'main' ? [{ uri, codename }] : []
  })
}

/** What the host's apt knows, and the release that it runs. */
export type HostSources = Pick<SourcesOptions, 'targets' | 'host'>

/** What to do when `findArchive` finds none, for people. */
export const NO_ARCHIVE =
  "apt has no package index of Debian's: put Debian's archive among its sources and run apt-get update"

/**
 * Finds the archive of the host's own release, else any other: the host may be a derivative of
 * Debian, or name its release differently. Null when apt knows no Debian archive.
 */
export function findArchive({ targets, host }: HostSources): AptTarget | null {
  // Archives beside a release have a dash: `trixie-security`, `trixie-backports`.
  const releases = targets.filter(({ codename }) => /^[a-z]+$/.test(codename))
  return releases.find(({ codename }) => codename === host) ?? releases[0] ?? null
}

/**
 * Renders the archive and the security archive that the host knows, with the suite swapped (deb822,
 * sources.list(5)).
 */
export function renderSources({ targets, host, suite, backports }: SourcesOptions): Sources {
  const archive = findArchive({ targets, host })
  if (archive === null) return { ok: false, why: NO_ARCHIVE }
  if (ROLLING.includes(suite)) return { ok: true, text: stanza(archive.uri, [suite]) }
  const suites = [suite, `${suite}-updates`, ...(backports === true ? [`${suite}-backports`] : [])]
  // A host that follows unstable has no security archive among its sources.
  const beside = `${archive.codename}-security`
  const security = targets.find(({ codename }) => codename === beside)?.uri
  const guarded = security === undefined ? [] : [stanza(security, [`${suite}-security`])]
  return { ok: true, text: [stanza(archive.uri, suites), ...guarded].join('\n') }
}

const stanza = (uri: string, suites: readonly string[]) =>
  [
    'Types: deb',
    `URIs: ${uri}`,
    `Suites: ${suites.join(' ')}`,
    `Components: ${COMPONENTS}`,
    `Signed-By: ${KEYRING}`,
    '',
  ].join('\n')
