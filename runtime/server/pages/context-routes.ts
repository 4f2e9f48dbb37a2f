/** The routes of pages, by kind: what answers one is given the context of its request. */
import type { H3Event } from 'h3'
import type { MaybePromise } from '#kit/foundation/maybe-promise.ts'
import type { Answer } from '#kit/web/answers/answers.ts'
import type { Route } from '#kit/web/answers/route.ts'
import type { PageScope } from '#kit/web/answers/rules/rights.ts'
import {
  buttonRoute,
  type FormOptions,
  formRoute,
  type PageOptions,
  pageRoute,
  uploadRoute,
} from '#kit/web/ui/form-notices.ts'
import { isAsked } from './question.ts'
import { KEYS_PATH, chooseKeys, renderKeysPage, type PageKeys } from '#kit/web/ui/keys-page.ts'
import type { PageContext } from './page-context.ts'

export type ContextRoute<Context> = (contextOf: (event: H3Event) => Context) => Route

type Handle<Context> = (context: Context) => MaybePromise<Answer>
type HandleForm<Context> = (context: Context, form: URLSearchParams) => MaybePromise<Answer>

/** `scope`: what it takes to open or press it; without `reach` it also takes a view of the whole fleet. */
export const pageAt =
  <Context>(
    path: string,
    scope: PageScope,
    handle: Handle<Context>,
    options?: PageOptions,
  ): ContextRoute<Context> =>
  (contextOf) =>
    pageRoute(path, scope, (event) => handle(contextOf(event)), options)

export const buttonAt =
  <Context>(
    path: string,
    scope: PageScope,
    handle: Handle<Context>,
    options?: PageOptions,
  ): ContextRoute<Context> =>
  (contextOf) =>
    buttonRoute(path, scope, (event) => handle(contextOf(event)), options)

export const formAt =
  <Context>(
    path: string,
    scope: PageScope,
    handle: HandleForm<Context>,
    options?: FormOptions,
  ): ContextRoute<Context> =>
  (contextOf) =>
    formRoute(path, scope, (event, form) => handle(contextOf(event), form), options)

/** Files as texts. */
export const uploadAt =
  <Context>(
    path: string,
    scope: PageScope,
    handle: HandleForm<Context>,
    options: FormOptions & { readonly most: number },
  ): ContextRoute<Context> =>
  (contextOf) =>
    uploadRoute(path, scope, (event, form) => handle(contextOf(event), form), options)

/** The answer to the question of `ask` is posted to the same path. */
export const removalAt = <Context>(
  path: string,
  scope: PageScope,
  ask: HandleForm<Context>,
  remove: HandleForm<Context>,
  options?: FormOptions,
): ContextRoute<Context> =>
  formAt(path, scope, (context, form) => (isAsked(form) ? ask : remove)(context, form), options)

/** /ui/keys: the keys of the pages, as a page or a dialog, and the switch that turns them off. */
export const keysPages = <Context extends PageContext>(
  line: PageKeys,
): readonly ContextRoute<Context>[] => [
  pageAt(
    KEYS_PATH,
    'own',
    (context: Context) =>
      context.show({
        title: 'Keyboard shortcuts',
        body: renderKeysPage(context.event, line),
      }),
    { reach: 'shared' },
  ),
  formAt(KEYS_PATH, 'own', (_context: Context, form) => chooseKeys(form), { reach: 'shared' }),
]
