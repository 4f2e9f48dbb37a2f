/** Whether single keys of a keyboard do something on the pages: a choice of each browser, in a cookie. */
import { getCookie, type H3Event } from 'h3'
import { address, attributes, type Html } from './html.ts'

export const KEYS_PATH = '/ui/keys'

const COOKIE = 'flasher-keys'
const YEAR_SECONDS = 365 * 24 * 3600

/** On, unless somebody has switched them off. */
export const readKeys = (event: H3Event): boolean => getCookie(event, COOKIE) !== 'off'

export const renderKeysCookie = (isOn: boolean): string =>
  `${COOKIE}=${isOn ? '' : 'off'}; Path=/; Max-Age=${isOn ? 0 : YEAR_SECONDS}; HttpOnly; SameSite=Lax`

/** A script shows the page as a dialog. `here`: where the link is. */
export const opensKeys = (here: string): Html =>
  attributes({
    href: address(KEYS_PATH, { back: here }),
    'hx-get': address(KEYS_PATH, { back: here }),
    'hx-target': '#dialog',
    'hx-select': '#question',
    'hx-swap': 'innerHTML',
    'data-keys': true,
  })
