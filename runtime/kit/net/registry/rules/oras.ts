/** Parses the reference of an image in an OCI registry, and derives the URLs to fetch it from. */
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

type OrasVersion =
  | { readonly kind: 'tag'; readonly tag: string }
  /** `sha256:` and 64 hexadecimal digits. */
  | { readonly kind: 'digest'; readonly digest: string }

export interface OrasRef {
  /** Lower case, with the port where one is named. */
  readonly host: string
  readonly repository: string
  readonly version: OrasVersion
}

const LONGEST = 1024
const HOST = /^[a-z0-9][a-z0-9.-]*(?::\d{1,5})?$/i
/** As the distribution specification spells a repository: no `.` or `..` can be a part of it. */
const PART = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$/
const VERSIONED = /^([^:@]*)(?::(\w[\w.-]{0,127}))?(?:@(sha256:[0-9a-f]{64}))?$/
export const isDigest = (text: string): boolean => /^sha256:[0-9a-f]{64}$/.test(text)

export const isOrasUrl = (text: string): boolean => /^oras:\/\//i.test(text)

/** `oras://host/repository:tag`, or with `@sha256:…`. Refused in words, without the reference. */
export function parseOrasRef(text: string): Result<OrasRef, string> {
  if (!isOrasUrl(text)) return refuse('not an oras:// reference')
  const body = text.slice('oras://'.length)
  if (body === '') return refuse('an empty reference')
  if (body.length > LONGEST) return refuse(`malformed: longer than ${LONGEST} characters`)
  const slash = body.indexOf('/')
  const host = slash < 0 ? body : body.slice(0, slash)
  if (!isHost(host)) return refuse('malformed: no host in front of the first /')
  const version = parseVersion(body.slice(host.length + 1))
  if (version === null) return refuse('malformed: it must have one :tag or one @sha256:<64 digits>')
  if (!version.repository.split('/').every((part) => PART.test(part))) {
    return refuse('malformed: a repository is written in lower-case letters, digits, ., _ and -')
  }
  return accept({ host: host.toLowerCase(), ...version })
}

/** A tag of a repository; none: `latest`. Refused in words, without the reference. */
export function parseOrasTarget(text: string): Result<OrasRef, string> {
  const isVersioned = /[:@][^/]*$/.test(text.slice('oras://'.length).replace(/^[^/]*/, ''))
  const parsed = parseOrasRef(isOrasUrl(text) && !isVersioned ? `${text}:latest` : text)
  if (!parsed.ok || parsed.value.version.kind === 'tag') return parsed
  return refuse('an image is stored under a tag, not under a digest')
}

export const renderOrasRef = ({ host, repository, version }: OrasRef): string =>
  `oras://${host}/${repository}${version.kind === 'tag' ? ':' : '@'}${locatorOf(version)}`

/** What comes behind `/manifests/`. */
export const locatorOf = (version: OrasVersion): string =>
  version.kind === 'tag' ? version.tag : version.digest

type RegistryScheme = 'https' | 'http'

/**
 * Decides how to speak to a registry, best first. Plain http is for the hosts listed in
 * `plainHosts` (FLASHER_REGISTRY_HTTP, by commas), and for this machine itself where it does not
 * speak TLS.
 */
export function decideSchemes(host: string, plainHosts: string): readonly RegistryScheme[] {
  const listed = plainHosts.split(',').map((name) => name.trim().toLowerCase())
  if (namesOfRegistry(host).some((name) => listed.includes(name))) return ['http']
  return isLoopback(host) ? ['https', 'http'] : ['https']
}

/** `locator`: a tag or a digest. */
export const manifestUrl = (base: string, repository: string, locator: string): string =>
  `${base}/v2/${repository}/manifests/${locator}`
export const blobUrlOf = (base: string, repository: string, digest: string): string =>
  `${base}/v2/${repository}/blobs/${digest}`

const isLoopback = (host: string) =>
  /^(localhost|127(\.\d{1,3}){3})(:\d+)?$/.test(host) && URL.canParse(`http://${host}`)

const isHost = (host: string) => HOST.test(host) && URL.canParse(`https://${host}`)

function parseVersion(text: string): Pick<OrasRef, 'repository' | 'version'> | null {
  const [, repository = '', tag, digest] = VERSIONED.exec(text) ?? []
  // A tag beside a digest only tells people where it once was.
  if (digest !== undefined) return { repository, version: { kind: 'digest', digest } }
  return tag === undefined ? null : { repository, version: { kind: 'tag', tag } }
}

/** The names of Docker Hub: people say `docker.io`, its registry and its logins are called otherwise. */
interface HubRepository {
  /** Lower case, with the port where one is named. */
  readonly host: string
  readonly repository: string
}

const REGISTRY = 'registry-1.docker.io'
/** That of `docker login` first, then podman's, then others that lead there. */
const NAMES = ['index.docker.io', 'docker.io', REGISTRY, 'registry.hub.docker.com']
/** What `docker login` calls it in its configuration, and to programs that keep passwords. */
const LOGIN = 'https://index.docker.io/v1/'

/** All names by which a registry may be meant; one of its own for nearly all. */
export const namesOfRegistry = (host: string): readonly string[] =>
  NAMES.includes(host) ? NAMES : [host]

/** What credential helpers are asked for, the best first. */
export const loginsOf = (host: string): readonly string[] =>
  NAMES.includes(host) ? [LOGIN, ...NAMES] : [host]

/** Images of Docker Hub without an owner are below `library/` there. */
export function locateRegistry({ host, repository }: HubRepository): HubRepository {
  if (!NAMES.includes(host)) return { host, repository }
  return {
    host: REGISTRY,
    repository: repository.includes('/') ? repository : `library/${repository}`,
  }
}
