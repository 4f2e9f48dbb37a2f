/** The API document as a page: the route table for people. */
import { fillHtml, html, type Html } from './html.ts'
import { renderTable } from './tables.ts'
import type { Access, Route } from '../answers/route.ts'
import { PAGES } from '#server/texts/texts.ts'

const t = PAGES.frame.api

/** Routes without a description are left out. */
export function renderDocument(version: string, routes: readonly Route[]): Html {
  const rows = routes.flatMap((route) =>
    route.doc === undefined ? [] : [renderRow(route, route.doc.summary, route.doc.query ?? {})],
  )
  return html`<p class="prose">
      ${fillHtml(t.introduction, {
        version,
        error: html`<code>{"detail": …}</code>`,
        header: html`<code>Authorization: Bearer</code>`,
        document: html`<a href="/openapi.json">openapi.json</a>`,
      })}
    </p>
    ${renderTable({ caption: t.caption, columns: [t.request, t.scope, t.description], rows })}`
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
