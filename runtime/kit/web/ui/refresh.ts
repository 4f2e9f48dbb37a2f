/** Parts of a page that reload themselves: after a change, or at a fixed interval. */
import { attributes, type Html } from './html.ts'

const morph = (id: string, href: string) => ({
  id,
  'hx-ext': 'morph',
  'hx-get': href,
  'hx-select': `#${id}`,
  'hx-swap': 'morph:outerHTML',
})

/**
 * Reloads a part on every change of a machine, but at most once in `everyMs` (`news.js`); also
 * every `seconds`, where other things are shown as well.
 */
export const refreshOnNews = (
  id: string,
  href: string,
  everyMs: number,
  seconds: number | null = null,
): Html =>
  attributes({
    ...morph(id, href),
    'hx-trigger': seconds === null ? 'flasher:news' : `flasher:news, every ${seconds}s`,
    'data-every': everyMs,
  })

/** Null: never. */
export const refreshEvery = (id: string, href: string, seconds: number | null): Html =>
  attributes(seconds === null ? { id } : { ...morph(id, href), 'hx-trigger': `every ${seconds}s` })
