/** The colour scheme, light, dark or the system's, in a cookie that the page's scripts can read. */
import { getCookie, type H3Event } from 'h3'
import { seeOther } from '../answers/answers.ts'
import { icon, type IconName } from './elements.ts'
import { attributes, html, type Html } from './html.ts'
import { localPath } from '../answers/checked.ts'
import type { Route } from '../answers/route.ts'

const THEMES = ['system', 'light', 'dark'] as const
export type Theme = (typeof THEMES)[number]

const COOKIE = 'flasher-theme'
const YEAR_SECONDS = 365 * 24 * 3600

const ICONS: Readonly<Record<Theme, IconName>> = { system: 'system', light: 'sun', dark: 'moon' }

/** `system` where the cookie names none. */
export const readTheme = (event: H3Event): Theme => parseTheme(getCookie(event, COOKIE))

const parseTheme = (text: string | null | undefined): Theme =>
  THEMES.find((theme) => theme === text) ?? 'system'

const THEME = { label: 'Colour scheme', system: 'System', light: 'Light', dark: 'Dark' } as const

/** Three buttons; a script switches without loading the page again. */
export const themeSwitch = (selected: Theme, here: string): Html =>
  html`<form method="post" action="/ui/theme" class="theme">
    <input type="hidden" name="back" value="${here}" />
    <div role="group" aria-label="${THEME.label}">
      ${THEMES.map(
        (theme) =>
          html`<button${attributes({
            name: 'theme',
            value: theme,
            title: THEME[theme],
            'aria-label': THEME[theme],
            'aria-pressed': theme === selected ? 'true' : 'false',
          })}>${icon(ICONS[theme])}</button>`,
      )}
    </div>
  </form>`

export const themeRoute: Route = {
  method: 'POST',
  path: '/ui/theme',
  access: { page: 'own' },
  reach: 'shared',
  takes: 'form',
  handle(_event, form) {
    const theme = parseTheme(form.get('theme'))
    const cookie = `${COOKIE}=${theme}; Path=/; Max-Age=${YEAR_SECONDS}; SameSite=Lax`
    return seeOther(localPath(form.get('back')), { 'set-cookie': cookie })
  },
}
