/** What the forms of a page do, as commands for a shell, folded below them. */
import { copyBlock } from '#kit/web/ui/elements.ts'
import { attributes, fillHtml, html, type Content } from '#kit/web/ui/html.ts'
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

/** `id` keeps it open when the page refreshes itself. Renders nothing without calls. */
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
