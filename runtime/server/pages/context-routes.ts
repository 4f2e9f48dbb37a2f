/** The routes of pages, by kind: what answers one is given the context of its request. */
import type { H3Event } from 'h3'
import type { Eventual } from '../../kit/foundation/eventual.ts'
import type { Answer } from '../../kit/web/answers/answers.ts'
import type { Route } from '../../kit/web/answers/route.ts'
import { buttonRoute, formRoute, pageRoute, uploadRoute } from '../../kit/web/ui/page-routes.ts'
import { isAsked } from './question.ts'

/** A route once it is known where contexts come from. */
export type ContextRoute<Context> = (contextOf: (event: H3Event) => Context) => Route

type Handle<Context> = (context: Context) => Eventual<Answer>
type HandleForm<Context> = (context: Context, form: URLSearchParams) => Eventual<Answer>

/** Makes the route of a page (`GET`) whose handler gets the context of the request. */
export const pageAt =
  <Context>(path: string, handle: Handle<Context>): ContextRoute<Context> =>
  (contextOf) =>
    pageRoute(path, (event) => handle(contextOf(event)))

/** Makes the route of a button without fields (`POST`) whose handler gets the context of the request. */
export const buttonAt =
  <Context>(path: string, handle: Handle<Context>): ContextRoute<Context> =>
  (contextOf) =>
    buttonRoute(path, (event) => handle(contextOf(event)))

/**
 * Makes the route of a form (`POST`). `most` is the limit in bytes, where a form may be longer than
 * usual.
 */
export const formAt =
  <Context>(path: string, handle: HandleForm<Context>, most?: number): ContextRoute<Context> =>
  (contextOf) =>
    formRoute(path, (event, form) => handle(contextOf(event), form), most)

/** Makes the route of a form with files, which are taken as texts. `most`: bytes of all of it. */
export const uploadAt =
  <Context>(path: string, handle: HandleForm<Context>, most: number): ContextRoute<Context> =>
  (contextOf) =>
    uploadRoute(path, (event, form) => handle(contextOf(event), form), most)

/**
 * Makes the route of a form that removes something: `ask` shows a question, whose answer is posted to
 * the same path.
 */
export const removalAt = <Context>(
  path: string,
  ask: HandleForm<Context>,
  remove: HandleForm<Context>,
): ContextRoute<Context> =>
  formAt(path, (context, form) => (isAsked(form) ? ask : remove)(context, form))
