/** The routes of pages, by kind: a page, a button without fields, a form. */
import type { H3Event } from 'h3'
import type { Route } from '../answers/route.ts'

type HandleRequest = (event: H3Event) => unknown

/** Makes the route of a page, for an operator's session alone. */
export const pageRoute = (path: string, handle: HandleRequest): Route => ({
  method: 'GET',
  path,
  access: 'page',
  handle,
})

/** Makes the route of a button: a POST whose body is not read. */
export const buttonRoute = (path: string, handle: HandleRequest): Route => ({
  method: 'POST',
  path,
  access: 'page',
  handle,
})

/** Makes the route of a form; `most` is its limit in bytes, where it may be longer than usual. */
export const formRoute = (
  path: string,
  handle: (event: H3Event, form: URLSearchParams) => unknown,
  most?: number,
): Route => ({
  method: 'POST',
  path,
  access: 'page',
  takes: 'form',
  handle,
  ...(most === undefined ? {} : { most }),
})
