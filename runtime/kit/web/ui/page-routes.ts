/** The routes of pages, by kind: a page, a button without fields, a form. */
import type { H3Event } from 'h3'
import type { MaybePromise } from '#kit/foundation/maybe-promise.ts'
import type { Answer } from '../answers/answers.ts'
import { LIMITS } from '../answers/limits.ts'
import type { Route } from '../answers/route.ts'
import type { PageScope } from '../answers/rules/rights.ts'

type HandleRequest = (event: H3Event) => MaybePromise<Answer>
type HandleForm = (event: H3Event, form: URLSearchParams) => MaybePromise<Answer>

export type PageOptions = Pick<Route, 'reach'>

/** `most`: its limit in bytes, where it may be longer than usual. */
export type FormOptions = PageOptions & { readonly most?: number }

/** For an operator's session alone. */
export const pageRoute = (
  path: string,
  scope: PageScope,
  handle: HandleRequest,
  options?: PageOptions,
): Route => ({ method: 'GET', path, access: { page: scope }, handle, ...options })

/** Its body is not read. */
export const buttonRoute = (
  path: string,
  scope: PageScope,
  handle: HandleRequest,
  options?: PageOptions,
): Route => ({ method: 'POST', path, access: { page: scope }, handle, ...options })

export const formRoute = (
  path: string,
  scope: PageScope,
  handle: HandleForm,
  options?: FormOptions,
): Route => ({ method: 'POST', path, access: { page: scope }, takes: 'form', handle, ...options })

/** Files are taken as texts. */
export const uploadRoute = (
  path: string,
  scope: PageScope,
  handle: HandleForm,
  options: FormOptions & { readonly most: number },
): Route => ({
  method: 'POST',
  path,
  access: { page: scope },
  takes: 'form',
  takesFiles: true,
  handle,
  seconds: LIMITS.uploadSeconds,
  ...options,
})
