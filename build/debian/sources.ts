/** Package sources for any Debian release, made from those of this host: nothing here names a mirror. */

/** A repository that the host's apt takes an index from. */
export interface AptTarget {
  readonly uri: string
  readonly codename: string
}

export interface SourcesWish {
  readonly targets: readonly AptTarget[]
  /** The release that this host runs, by its code name. */
  readonly host: string
  readonly suite: string
  readonly backports?: boolean
}

export type Sources =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly why: string }

/** For `apt-get indextargets --format`: a row per index, which `parseTargets` reads. */
export const TARGET_FORMAT = '$(REPO_URI)|$(CODENAME)|$(COMPONENT)'

/** Signs every Debian release since 2013; package debian-archive-keyring. */
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg'
/** The host may do without firmware; what we make may not. */
const COMPONENTS = 'main non-free-firmware'
const ROLLING: readonly string[] = ['sid', 'unstable']

export function parseTargets(rows: string): readonly AptTarget[] {
  return rows.split('\n').flatMap((row) => {
    const [uri = '', codename = '', component] = row.split('|')
    return component === 'main' ? [{ uri, codename }] : []
  })
}

/** The host's own archive and security archive, with the suite swapped (deb822, sources.list(5)). */
export function renderSources({ targets, host, suite, backports }: SourcesWish): Sources {
  const uriOf = (name: string) => targets.find(({ codename }) => codename === name)?.uri
  const archive = uriOf(host)
  if (archive === undefined) {
    return { ok: false, why: `apt knows no package index of ${host}: run apt-get update` }
  }
  if (ROLLING.includes(suite)) return { ok: true, text: stanza(archive, [suite]) }
  const suites = [suite, `${suite}-updates`, ...(backports === true ? [`${suite}-backports`] : [])]
  // A host that follows unstable has no security archive to tell us of.
  const security = uriOf(`${host}-security`)
  const guarded = security === undefined ? [] : [stanza(security, [`${suite}-security`])]
  return { ok: true, text: [stanza(archive, suites), ...guarded].join('\n') }
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
