/** The routes of pages, by kind: what answers one is given the context of its request. */
import type { H3Event } from 'h3'
import type { Eventual } from '#kit/foundation/eventual.ts'
import type { Answer } from '#kit/web/answers/answers.ts'
import type { Route } from '#kit/web/answers/route.ts'
import { buttonRoute, formRoute, pageRoute, uploadRoute } from '#kit/web/ui/page-routes.ts'
import { isAsked } from './question.ts'
import { PAGES } from '#server/texts/texts.ts'
import { KEYS_PATH, chooseKeys, renderKeysPage, type PageKeys } from '#kit/web/ui/keys-page.ts'
import type { PageContext } from './page-context.ts'

export type ContextRoute<Context> = (contextOf: (event: H3Event) => Context) => Route

type Handle<Context> = (context: Context) => Eventual<Answer>
type HandleForm<Context> = (context: Context, form: URLSearchParams) => Eventual<Answer>

export const pageAt =
  <Context>(path: string, handle: Handle<Context>): ContextRoute<Context> =>
  (contextOf) =>
    pageRoute(path, (event) => handle(contextOf(event)))

export const buttonAt =
  <Context>(path: string, handle: Handle<Context>): ContextRoute<Context> =>
  (contextOf) =>
    buttonRoute(path, (event) => handle(contextOf(event)))

/** `most`: bytes, for longer forms. */
export const formAt =
  <Context>(path: string, handle: HandleForm<Context>, most?: number): ContextRoute<Context> =>
  (contextOf) =>
    formRoute(path, (event, form) => handle(contextOf(event), form), most)

/** Files as texts. `most`: bytes of all of it. */
export const uploadAt =
  <Context>(path: string, handle: HandleForm<Context>, most: number): ContextRoute<Context> =>
  (contextOf) =>
    uploadRoute(path, (event, form) => handle(contextOf(event), form), most)

/** The answer to the question of `ask` is posted to the same path. */
export const removalAt = <Context>(
  path: string,
  ask: HandleForm<Context>,
  remove: HandleForm<Context>,
): ContextRoute<Context> =>
  formAt(path, (context, form) => (isAsked(form) ? ask : remove)(context, form))

/** /ui/keys: the keys of the pages, as a page or a dialog, and the switch that turns them off. */
const texts = PAGES.find.keys

export const keysPages = <Context extends PageContext>(
  line: Omit<PageKeys, 'texts'>,
): readonly ContextRoute<Context>[] => [
  pageAt(KEYS_PATH, (context: Context) =>
    context.show({
      title: texts.title,
      section: KEYS_PATH,
      body: renderKeysPage(context.event, { ...line, texts }),
    }),
  ),
  formAt(KEYS_PATH, (_context: Context, form) => chooseKeys(form)),
]
