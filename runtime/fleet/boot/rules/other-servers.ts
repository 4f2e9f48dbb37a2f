/** The other servers of a site, to which a machine goes that gets no answer from the first. */

/** How long a boot loader waits for an answer where there is another server to ask, in milliseconds. */
export const ANSWER_MS = 3000

/**
 * How long it waits where none of them answered: a server holds a request for up to 12 s while
 * another one takes over, and then tells the machine to wait.
 */
export const HELD_MS = 15_000

const NONE: readonly string[] = []

/** All addresses are checked and have no slash at their ends. */
export const listOthers = (servers: readonly string[], base: string): readonly string[] =>
  servers.length === 0 ? NONE : servers.filter((server) => !isSame(server, base))

/** A port that the scheme implies may be written or not. */
const isSame = (one: string, two: string) => URL.parse(one)?.href === URL.parse(two)?.href

/** `host:port`: GRUB speaks HTTP only, and its paths begin at the root. */
export const listGrubServers = (others: readonly string[]): readonly string[] =>
  others.flatMap((other) => /^http:\/\/([^/]+)$/.exec(other)?.[1] ?? [])
