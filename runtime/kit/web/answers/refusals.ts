/** Derives the 4xx responses of a route from the route itself, for the API document. */
import type { Access, Method, Route } from './route.ts'

const MEANINGS: Readonly<Record<number, string>> = {
  400: 'Malformed: the Host header, a part of the path, or the body',
  401: 'Login required, or the token is not valid',
  403: 'The token lacks the scope, or the request comes from another site',
  404: 'Not found',
  408: 'The body took too long to arrive',
  409: 'Not possible in the present state',
  412: 'If-Match or If-None-Match does not hold, or is not supported here; nothing was changed',
  413: 'The body is too long',
  415: 'The body is of another type',
  416: 'The range lies outside the file',
  422: 'Not valid: the detail names each field',
  429: 'Too many requests, or wrong tokens: try again after Retry-After seconds',
}

export const meaningOf = (status: number): string => MEANINGS[status] ?? 'Refused'

/** What reading a body comes to, by what the route takes. */
const BY_BODY = {
  nothing: [],
  json: [408, 415, 422],
  'json-bytes': [408, 415, 422],
  form: [408, 415],
  bytes: [408, 415],
} as const

/** The guard against forms of other sites, the limit of bodies, and conditions of what replaces. */
const BY_METHOD: Readonly<Record<Method, readonly number[]>> = {
  GET: [],
  POST: [403, 413],
  PATCH: [403, 413],
  PUT: [403, 412, 413],
  DELETE: [403, 412, 413],
}

/** Lists the 4xx statuses of a route, ascending; `access` is what the route asks for now. */
export function listRefusals(route: Route, access: Access): readonly number[] {
  const { method, path, takes = 'nothing', doc } = route
  const canBeMissing = path.includes('/:') && doc?.isNeverMissing !== true
  const statuses = [
    // The Host header of nearly every request is checked.
    ...(route.isForAnyHost ? [] : [400]),
    // 429: several wrong tokens came from the same address.
    ...(access === 'open' ? [] : [401, 403, 429]),
    ...BY_METHOD[method],
    ...(canBeMissing ? [404] : []),
    ...BY_BODY[takes],
    ...(doc?.refuses ?? []),
  ]
  return [...new Set(statuses)].toSorted((a, b) => a - b)
}
