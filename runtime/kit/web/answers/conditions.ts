/** Requests that change something only under a condition: no route does it without holding the condition. */
import type { H3Event } from 'h3'
import { refuse } from './faults.ts'
import type { Route } from './route.ts'

/**
 * Throws a 412 for a request with `If-Match` or `If-None-Match` to a route that looks at neither: one
 * that does lists 412 among what it refuses, by `meetsConditions`.
 */
export function checkConditions(route: Route, { req: { headers } }: H3Event): void {
  const { method, path } = route
  const replaces = method === 'PUT' || method === 'DELETE'
  if (!replaces || route.doc?.refuses?.includes(412) === true) return
  const name = ['If-Match', 'If-None-Match'].find((each) => headers.has(each))
  if (name === undefined) return
  throw refuse(412, `${method} ${path} cannot hold ${name}: nothing was changed; ask without it`)
}
