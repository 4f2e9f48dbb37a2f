/** The keys of the pages, as a page or a dialog, and the switch that turns them off (WCAG 2.1.4). */
import { type H3Event, getCookie } from 'h3'
import { seeOther, type Answer } from '../answers/answers.ts'
import { localPath } from '../answers/checked.ts'
import { hidden } from './fields.ts'
import { fillHtml, html, type Content, type Html, address, attributes } from './html.ts'
import type { Section } from './rules/sections.ts'

export interface PageKeys {
  readonly hasFind: boolean
  readonly sections: readonly Pick<Section, 'key' | 'title'>[]
  /** Searches of the machines, to show what can be typed. */
  readonly examples: readonly string[]
}

const backOf = (text: string | null): string => localPath(text, '/ui/dashboard')

export function renderKeysPage(event: H3Event, line: PageKeys): Html {
  const back = backOf(event.url.searchParams.get('back'))
  const isOn = readKeys(event)
  const isDialog = event.req.headers.has('hx-request')
  const renderTitle = (title: string) =>
    isDialog ? html`<h3>${title}</h3>` : html`<h2>${title}</h2>`
  return renderBody(
    isDialog ? 'Keyboard shortcuts' : null,
    html`${isOn ? null : html`<p>Single keys are switched off in this browser; ${line.hasFind ? renderKey('Ctrl K') : '–'} works anyway.</p>`}
      ${renderTitle('Everywhere')} ${renderKeys(listGeneral(line))} ${renderTitle('In lists')}
      ${renderKeys(listOfRows())} ${renderExamples(line, renderTitle)}
      <p class="small dim">Keys do nothing while a field has the focus.</p>
      <form method="post" action="${KEYS_PATH}">
        ${hidden({ back, keys: isOn ? 'off' : 'on' })}
        <div class="row">
          <a class="button" href="${back}" data-close>Close</a
          ><button>${isOn ? 'Switch single keys off' : 'Switch single keys on'}</button>
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

const listGeneral = ({ hasFind, sections }: PageKeys): KeyRows => [
  ...(hasFind ? [['Ctrl K', 'search everything, and act'] as const] : []),
  ['/', 'search this page, or everything'],
  ['?', 'show these keys'],
  ...sections.map(({ key, title }) => [`g ${key}`, `go to ${title}`] as const),
]

const listOfRows = (): KeyRows => [
  ['j k', 'next and previous row'],
  ['Enter', 'open the row'],
  ['x', 'select the row'],
  ['a', 'assign an image and a disk to the machine'],
  ['f', 'flash the selected machines, or this one'],
  ['Esc', 'clear the selection'],
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

const renderExamples = ({ examples }: PageKeys, renderTitle: (title: string) => Html): Content =>
  examples.length === 0
    ? null
    : html`${renderTitle('Search of the machines')}
        <p class="small">
          ${fillHtml(
            'Terms match names, labels, images, serial numbers and addresses. Fields narrow the search: {examples}; prefix with {minus} to exclude.',
            {
              examples: examples.map(
                (each, at) => html`${at === 0 ? '' : ' '}<code>${each}</code>`,
              ),
              minus: html`<code>-</code>`,
            },
          )}
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
