/** The routes of pages, by kind: a page, a button without fields, a form. */
import type { H3Event } from 'h3'
import type { Eventual } from '#kit/foundation/eventual.ts'
import type { Answer } from '../answers/answers.ts'
import { LIMITS } from '../answers/limits.ts'
import type { Route } from '../answers/route.ts'

type HandleRequest = (event: H3Event) => Eventual<Answer>

/** For an operator's session alone. */
export const pageRoute = (path: string, handle: HandleRequest): Route => ({
  method: 'GET',
  path,
  access: 'page',
  handle,
})

/** Its body is not read. */
export const buttonRoute = (path: string, handle: HandleRequest): Route => ({
  method: 'POST',
  path,
  access: 'page',
  handle,
})

/** `most`: its limit in bytes, where it may be longer than usual. */
export const formRoute = (
  path: string,
  handle: (event: H3Event, form: URLSearchParams) => Eventual<Answer>,
  most?: number,
): Route => ({
  method: 'POST',
  path,
  access: 'page',
  takes: 'form',
  handle,
  ...(most === undefined ? {} : { most }),
})

/** Files are taken as texts. `most`: bytes of all of it. */
export const uploadRoute = (
  path: string,
  handle: (event: H3Event, form: URLSearchParams) => Eventual<Answer>,
  most: number,
): Route => ({
  method: 'POST',
  path,
  access: 'page',
  takes: 'form',
  takesFiles: true,
  handle,
  most,
  seconds: LIMITS.uploadSeconds,
})
