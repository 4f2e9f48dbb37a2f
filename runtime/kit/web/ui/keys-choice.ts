/** Whether single keys of a keyboard do something on the pages: a choice of each browser, in a cookie. */
import { getCookie, type H3Event } from 'h3'
import { address, attributes, type Html } from './html.ts'

/** The page that lists the keys, and on which they are switched on and off. */
export const KEYS_PATH = '/ui/keys'

const COOKIE = 'flasher-keys'
const YEAR_SECONDS = 365 * 24 * 3600

/** Reads whether single keys do something, which they do unless somebody has switched them off. */
export const readKeys = (event: H3Event): boolean => getCookie(event, COOKIE) !== 'off'

/** Renders the cookie of the choice. */
export const renderKeysCookie = (isOn: boolean): string =>
  `${COOKIE}=${isOn ? '' : 'off'}; Path=/; Max-Age=${isOn ? 0 : YEAR_SECONDS}; HttpOnly; SameSite=Lax`

/** Renders the attributes of a link to the keys, which a script shows as a dialog. `here`: where it is. */
export const opensKeys = (here: string): Html =>
  attributes({
    href: address(KEYS_PATH, { back: here }),
    'hx-get': address(KEYS_PATH, { back: here }),
    'hx-target': '#dialog',
    'hx-select': '#question',
    'hx-swap': 'innerHTML',
    'data-keys': true,
  })
