/** The cookie `flasher-token`: browsers have one for all ports of a host name, so it holds a session of each server there. */

const NAME = 'flasher-token'
const MAX_SESSIONS = 4
/** None of our cookies is nearly as long. */
const MAX_CHARACTERS = 768
/** A browser may hold several of the name, of different paths. */
const MAX_COOKIES = 3
/** How long a session lasts that nobody uses, in seconds. */
export const SESSION_SECONDS = 7 * 24 * 3600
/** No part of a session of any release, and allowed in cookies. */
const SEPARATOR = '~'
/** What cannot end the value, or begin another attribute. */
const SESSION = /^[\w.=:+/-]+$/

/** All that a `Cookie` header holds; h3's `getCookie` returns one. */
export function listSessions(header: string | null): readonly string[] {
  if (header === null) return []
  const cookies = header
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${NAME}=`))
    .slice(0, MAX_COOKIES)
  const sessions = cookies.flatMap((pair) =>
    pair
      .slice(NAME.length + 1)
      .split(SEPARATOR, MAX_SESSIONS)
      .filter((session) => session.length <= MAX_CHARACTERS && SESSION.test(session)),
  )
  return [...new Set(sessions)]
}

/** As `name=value`. The newest comes first; of too many, the last ones are left out. */
export const renderSessions = (sessions: readonly string[]): string =>
  `${NAME}=${sessions.slice(0, MAX_SESSIONS).join(SEPARATOR)}`
