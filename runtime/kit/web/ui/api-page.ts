/** The API document as a page: the route table for people. */
import { fillHtml, html, type Html } from './html.ts'
import { renderTable } from './tables.ts'
import type { Access, Route } from '../answers/route.ts'

/** Routes without a description are left out. */
export function renderDocument(version: string, routes: readonly Route[]): Html {
  const rows = routes.flatMap((route) =>
    route.doc === undefined ? [] : [renderRow(route, route.doc.summary, route.doc.query ?? {})],
  )
  return html`<p class="prose">
      ${fillHtml(
        'The HTTP API of flasher-web {version}. Errors are {error}; an invalid body gets a 422 with a list that names each field. Where a scope is given, send the session cookie or {header} with a token that has that scope. For programs: {document}.',
        {
          version,
          error: html`<code>{"detail": …}</code>`,
          header: html`<code>Authorization: Bearer</code>`,
          document: html`<a href="/openapi.json">openapi.json</a>`,
        },
      )}
    </p>
    ${renderTable({ caption: 'All routes', columns: ['Request', 'Scope', 'Description'], rows })}`
}

function renderRow(route: Route, summary: string, query: Readonly<Record<string, string>>): Html {
  const access: Access = typeof route.access === 'function' ? route.access() : route.access
  const terms = Object.entries(query).map(
    ([name, meaning]) => html`<div class="small dim"><code>${name}</code> ${meaning}</div>`,
  )
  return html`<tr>
    <td class="nowrap"><code>${route.method} ${route.path}</code></td>
    <td>${typeof access === 'object' || access === 'open' ? '–' : access}</td>
    <td>${summary}${terms}</td>
  </tr>`
}
