/** Validates the path that a form returns to: one below `/ui`, or the start page. */

const MAX = 2048

/**
 * The wanted path where it is below `/ui`, else the other one: anything else could lead away from
 * here.
 */
export function localPath(wanted: string | null | undefined, otherwise = '/ui/dashboard'): string {
  if (wanted === null || wanted === undefined || wanted.length > MAX) return otherwise
  const url = URL.parse(wanted, 'http://localhost')
  if (!wanted.startsWith('/') || url === null || url.origin !== 'http://localhost') return otherwise
  const isOurs = url.pathname === '/ui' || url.pathname.startsWith('/ui/')
  return isOurs ? `${url.pathname}${url.search}${url.hash}` : otherwise
}
