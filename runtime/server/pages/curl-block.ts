/** What a form would send, as a command for a shell, folded below it. */
import { PAGES } from '../texts/texts.ts'
import { fillHtml, html, type Html } from '../../kit/web/ui/html.ts'
import { copyBlock } from '../../kit/web/ui/elements.ts'
import type { Scope } from '../../kit/web/answers/rules/rights.ts'
import { renderCurl } from '../routes/rules/curl-command.ts'

const t = PAGES.frame.curl

/** Renders the command, and which scope its token needs. */
export const renderCurlBlock = (request: Parameters<typeof renderCurl>[0], scope: Scope): Html =>
  html`<details class="curl">
    <summary>${t.summary}</summary>
    <p class="small dim">
      ${fillHtml(t.token, {
        variable: html`<code>$FLASHER_TOKEN</code>`,
        scope: html`<code>${scope}</code>`,
        tokens: html`<a href="/ui/account#tokens">${t.tokens}</a>`,
      })}
    </p>
    ${copyBlock(renderCurl(request), t.label)}
  </details>`
