/** The routes of this line's pages, by kind: what answers one is given the context of its request. */
import type { H3Event } from 'h3'
import type { Route } from '../../../../kit/web/answers/route.ts'
import { buttonRoute, formRoute, pageRoute } from '../../../../kit/web/ui/page-routes.ts'
import type { PageContext } from './page-context.ts'
import { isAsked } from './question.ts'

/** A route once it is known where contexts come from. */
export type ContextRoute = (contextOf: (event: H3Event) => PageContext) => Route

type HandleContext = (context: PageContext) => unknown
type HandleForm = (context: PageContext, form: URLSearchParams) => unknown

/** Makes the route of a page (`GET`) whose handler gets the context of the request. */
export const pageAt =
  (path: string, handle: HandleContext): ContextRoute =>
  (contextOf) =>
    pageRoute(path, (event) => handle(contextOf(event)))

/** Makes the route of a button without fields (`POST`) whose handler gets the context of the request. */
export const buttonAt =
  (path: string, handle: HandleContext): ContextRoute =>
  (contextOf) =>
    buttonRoute(path, (event) => handle(contextOf(event)))

/**
 * Makes the route of a form (`POST`). `most` is the limit in bytes, where a form may be longer than
 * usual.
 */
export const formAt =
  (path: string, handle: HandleForm, most?: number): ContextRoute =>
  (contextOf) =>
    formRoute(path, (event, form) => handle(contextOf(event), form), most)

/**
 * Makes the route of a form that removes something: `ask` shows a question, whose answer is posted to
 * the same path.
 */
export const removalAt = (path: string, ask: HandleForm, remove: HandleForm): ContextRoute =>
  formAt(path, (context, form) => (isAsked(form) ? ask : remove)(context, form))
