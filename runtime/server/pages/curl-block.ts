/** What the forms of a page do, as commands for a shell, folded below them. */
import { PAGES } from '../texts/texts.ts'
import { fill } from '../../kit/texts/text.ts'
import { copyBlock } from '../../kit/web/ui/elements.ts'
import { attributes, fillHtml, html, type Content } from '../../kit/web/ui/html.ts'
import type { Scope } from '../../kit/web/answers/rules/rights.ts'
import { renderCurl, type CurlRequest } from '../routes/rules/curl-command.ts'
import type { PageContext } from './page-context.ts'

const t = PAGES.frame.curl

/** A request of the API that does what a form does. */
export interface CurlCall extends Omit<CurlRequest, 'url'> {
  /** The path of the address, encoded but for blanks. */
  readonly path: string
  /** The scope that its token needs. */
  readonly scope: Scope
  /** What the button says, where a page has several commands in one place. */
  readonly label?: string
}

/** What stands in a command for what nobody has typed yet. */
export const blank = (name: string): string => `<${name}>`

/**
 * With the scopes that their token needs; nothing where there are none. `id` keeps it open where a
 * page refreshes itself.
 */
export function renderCurlBlock(
  context: Pick<PageContext, 'contact'>,
  calls: readonly CurlCall[],
  id: string | null = null,
): Content {
  if (calls.length === 0) return null
  const { baseUrl } = context.contact()
  const scopes = [...new Set(calls.map(({ scope }) => scope))]
  const hasBlanks = calls.some(({ path, body }) => BLANK.test(`${path}${JSON.stringify(body)}`))
  return html`<details class="curl" ${attributes({ id })}>
    <summary>${t.summary}</summary>
    <p class="small dim">
      ${fillHtml(scopes.length === 1 ? t.token : t.tokenOfAll, {
        variable: html`<code>$FLASHER_TOKEN</code>`,
        scope: html`${scopes.map((scope, at) => html`${at === 0 ? '' : ', '}<code>${scope}</code>`)}`,
        tokens: html`<a href="/ui/account#tokens">${t.tokens}</a>`,
      })}
      ${hasBlanks ? t.blanks : null}
    </p>
    ${calls.map(({ label, path, method, body }) => {
      const command = copyBlock(
        renderCurl({ method, url: `${baseUrl}${path}`, ...(body === undefined ? {} : { body }) }),
        label === undefined ? t.label : fill(t.labelOf, { button: label }),
      )
      return label === undefined
        ? command
        : html`<p class="small">${label}</p>
            ${command}`
    })}
  </details>`
}

/** What `blank` writes. */
const BLANK = /<[a-z_]+>/
