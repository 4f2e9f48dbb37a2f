/** /ui/keys: the keys of the pages, as a page or a dialog, and the switch that turns them off. */
import { PAGES } from '#server/texts/texts.ts'
import { KEYS_PATH } from '#kit/web/ui/keys-choice.ts'
import { chooseKeys, renderKeysPage, type PageKeys } from '#kit/web/ui/keys-page.ts'
import { formAt, pageAt, type ContextRoute } from './context-routes.ts'
import type { PageContext } from './page-context.ts'

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
