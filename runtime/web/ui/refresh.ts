/** Parts of a page that reload themselves: after a change, or at a fixed interval. */
import { attributes, type Html } from './html.ts'

const morph = (id: string, href: string) => ({
  id,
  'hx-ext': 'morph',
  'hx-get': href,
  'hx-select': `#${id}`,
  'hx-swap': 'morph:outerHTML',
})

/** On every change of a machine, but at most once in `everyMs` (`news.js`). */
export const refreshOnNews = (id: string, href: string, everyMs: number): Html =>
  attributes({ ...morph(id, href), 'hx-trigger': 'flasher:news', 'data-every': everyMs })

/** Every `seconds`; null: never. */
export const refreshEvery = (id: string, href: string, seconds: number | null): Html =>
  attributes(seconds === null ? { id } : { ...morph(id, href), 'hx-trigger': `every ${seconds}s` })
