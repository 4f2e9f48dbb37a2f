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
