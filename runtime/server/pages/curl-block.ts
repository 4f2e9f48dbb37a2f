/** What the forms of a page do, as commands for a shell, folded below them in browsers that have them switched on. */
import { getCookie, type H3Event } from 'h3'
import { seeOther, type Answer } from '#kit/web/answers/answers.ts'
import { localPath } from '#kit/web/answers/checked.ts'
import { hidden } from '#kit/web/ui/fields.ts'
import { copyBlock } from '#kit/web/ui/elements.ts'
import { attributes, fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import type { Scope } from '#kit/web/answers/rules/rights.ts'
import { renderCurl, type CurlRequest } from '#server/routes/rules/curl-command.ts'
import type { PageContext } from './page-context.ts'

export interface CurlCall extends Omit<CurlRequest, 'url'> {
  /** Encoded but for blanks. */
  readonly path: string
  readonly scope: Scope
  readonly label?: string
}

export const blank = (name: string): string => `<${name}>`

export const CALLS_PATH = '/ui/api-calls'
const COOKIE = 'flasher-api-calls'
const YEAR_SECONDS = 365 * 24 * 3600

const showsCalls = (event: H3Event): boolean => getCookie(event, COOKIE) === 'on'

/** For the foot of each page. */
export const renderCallsSwitch = (event: H3Event): Html => {
  const isOn = showsCalls(event)
  return html`<form method="post" action="${CALLS_PATH}" class="calls">
    ${hidden({ back: `${event.url.pathname}${event.url.search}`, calls: isOn ? 'off' : 'on' })}
    <button>${isOn ? 'Hide API calls' : 'Show API calls'}</button>
  </form>`
}

export function chooseCalls(form: URLSearchParams): Answer {
  const [value, seconds] = form.get('calls') === 'on' ? ['on', YEAR_SECONDS] : ['', 0]
  const cookie = `${COOKIE}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Lax`
  return seeOther(localPath(form.get('back'), '/ui/dashboard'), { 'set-cookie': cookie })
}

/** `id` keeps it open when the page refreshes itself. Renders nothing without calls. */
export function renderCurlBlock(
  context: Pick<PageContext, 'contact' | 'event'>,
  calls: readonly CurlCall[],
  id: string | null = null,
): Content {
  if (calls.length === 0 || !showsCalls(context.event)) return null
  const { baseUrl } = context.contact()
  const scopes = [...new Set(calls.map(({ scope }) => scope))]
  const hasBlanks = calls.some(({ path, body }) => BLANK.test(`${path}${JSON.stringify(body)}`))
  return html`<details class="curl" ${attributes({ id })}>
    <summary>Copy as curl</summary>
    <p class="small dim">
      ${fillHtml(
        scopes.length === 1
          ? '{variable} holds a token with the scope {scope}; {tokens} makes one.'
          : '{variable} holds a token with the scopes {scope}; {tokens} makes one.',
        {
          variable: html`<code>$FLASHER_TOKEN</code>`,
          scope: html`${scopes.map((scope, at) => html`${at === 0 ? '' : ', '}<code>${scope}</code>`)}`,
          tokens: html`<a href="/ui/account#tokens">your account</a>`,
        },
      )}
      ${hasBlanks ? 'Replace what stands between < and >.' : null}
    </p>
    ${calls.map(({ label, path, method, body }) => {
      const command = copyBlock(
        renderCurl({ method, url: `${baseUrl}${path}`, ...(body === undefined ? {} : { body }) }),
        label === undefined ? 'The same as a command' : `${label}, as a command`,
      )
      return label === undefined
        ? command
        : html`<p class="small">${label}</p>
            ${command}`
    })}
  </details>`
}

const BLANK = /<[a-z_]+>/
