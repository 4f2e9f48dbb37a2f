/** The keys of the pages, as a page or a dialog, and the switch that turns them off (WCAG 2.1.4). */
import { type H3Event, getCookie } from 'h3'
import { fill } from '#kit/texts/text.ts'
import { seeOther, type Answer } from '../answers/answers.ts'
import { localPath } from '../answers/checked.ts'
import { hidden } from './fields.ts'
import { fillHtml, html, type Content, type Html, address, attributes } from './html.ts'

type KeyWord =
  | 'title'
  | 'everywhere'
  | 'lists'
  | 'find'
  | 'enter'
  | 'escape'
  | 'palette'
  | 'search'
  | 'help'
  | 'go'
  | 'move'
  | 'open'
  | 'select'
  | 'assign'
  | 'flash'
  | 'clear'
  | 'searchTitle'
  | 'searchText'
  | 'note'
  | 'isOff'
  | 'off'
  | 'on'
  | 'close'

type KeyTexts = Readonly<Record<KeyWord, string>>

export interface PageKeys {
  readonly texts: KeyTexts
  readonly hasFind: boolean
  /** The section that the key behind `g` leads to, in their order. */
  readonly sections: readonly (readonly [key: string, title: string])[]
  /** Searches of the machines, to show what can be typed. */
  readonly examples: readonly string[]
}

const backOf = (text: string | null): string => localPath(text, '/ui/dashboard')

export function renderKeysPage(event: H3Event, line: PageKeys): Html {
  const t = line.texts
  const back = backOf(event.url.searchParams.get('back'))
  const isOn = readKeys(event)
  const isDialog = event.req.headers.has('hx-request')
  const renderTitle = (title: string) =>
    isDialog ? html`<h3>${title}</h3>` : html`<h2>${title}</h2>`
  return renderBody(
    isDialog ? t.title : null,
    html`${isOn ? null : html`<p>${fillHtml(t.isOff, { palette: line.hasFind ? renderKey(t.find) : '–' })}</p>`}
      ${renderTitle(t.everywhere)} ${renderKeys(listGeneral(line))} ${renderTitle(t.lists)}
      ${renderKeys(listOfRows(t))} ${renderExamples(line, renderTitle)}
      <p class="small dim">${t.note}</p>
      <form method="post" action="${KEYS_PATH}">
        ${hidden({ back, keys: isOn ? 'off' : 'on' })}
        <div class="row">
          <a class="button" href="${back}" data-close>${t.close}</a
          ><button>${isOn ? t.off : t.on}</button>
        </div>
      </form>`,
  )
}

export const chooseKeys = (form: URLSearchParams): Answer =>
  seeOther(backOf(form.get('back')), { 'set-cookie': renderKeysCookie(form.get('keys') === 'on') })

/** A dialog has no title but that of its text; a page has its own. */
const renderBody = (dialogTitle: string | null, body: Html): Html =>
  dialogTitle === null
    ? html`<section class="card stack">${body}</section>`
    : renderDialog(dialogTitle, body)

export const renderDialog = (title: Content, body: Content): Html =>
  html`<section class="card stack" id="question">
    <h2 id="dialog-title">${title}</h2>
    ${body}
  </section>`

type KeyRows = readonly (readonly [keys: string, what: string])[]

const listGeneral = ({ hasFind, sections, texts: t }: PageKeys): KeyRows => [
  ...(hasFind ? [[t.find, t.palette] as const] : []),
  ['/', t.search],
  ['?', t.help],
  ...sections.map(([key, section]) => [`g ${key}`, fill(t.go, { section })] as const),
]

const listOfRows = (t: KeyTexts): KeyRows => [
  ['j k', t.move],
  [t.enter, t.open],
  ['x', t.select],
  ['a', t.assign],
  ['f', t.flash],
  [t.escape, t.clear],
]

const renderKey = (names: string): readonly Html[] =>
  names.split(' ').map((key) => html`<kbd>${key}</kbd> `)

const renderKeys = (keys: KeyRows): Html =>
  html`<dl class="facts">
    ${keys.map(
      ([names, what]) =>
        html`<dt>${renderKey(names)}</dt>
          <dd>${what}</dd>`,
    )}
  </dl>`

const renderExamples = (
  { examples, texts: t }: PageKeys,
  renderTitle: (title: string) => Html,
): Content =>
  examples.length === 0
    ? null
    : html`${renderTitle(t.searchTitle)}
        <p class="small">
          ${fillHtml(t.searchText, {
            examples: examples.map((each, at) => html`${at === 0 ? '' : ' '}<code>${each}</code>`),
            minus: html`<code>-</code>`,
          })}
        </p>`

// Whether single keys of a keyboard do something on the pages: a choice of each browser, in a cookie.

export const KEYS_PATH = '/ui/keys'

const COOKIE = 'flasher-keys'
const YEAR_SECONDS = 365 * 24 * 3600

/** On, unless somebody has switched them off. */
export const readKeys = (event: H3Event): boolean => getCookie(event, COOKIE) !== 'off'

const renderKeysCookie = (isOn: boolean): string =>
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
