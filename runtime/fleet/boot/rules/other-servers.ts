/** The other servers of a site, to which a machine goes that gets no answer from the first. */

/** A boot loader's wait for an answer if there is another server, in milliseconds. */
export const ANSWER_MS = 3000

/**
 * The wait after a silent round: a server holds a request for up to 12 s while another takes over,
 * and then tells the machine to wait.
 */
export const HELD_MS = 15_000

const NONE: readonly string[] = []

/** Addresses are checked, no trailing slash. */
export const listOthers = (servers: readonly string[], base: string): readonly string[] =>
  servers.length === 0 ? NONE : servers.filter((server) => !isSame(server, base))

/** The scheme's default port may be written or not. */
const isSame = (one: string, two: string) => URL.parse(one)?.href === URL.parse(two)?.href

/** `host:port`: GRUB only knows HTTP, and its paths begin at the root. */
export const listGrubServers = (others: readonly string[]): readonly string[] =>
  others.flatMap((other) => /^http:\/\/([^/]+)$/.exec(other)?.[1] ?? [])
