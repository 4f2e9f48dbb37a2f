/** The API document as a page: the route table for people. */
import { html, type Html } from './html.ts'
import type { Access, Route } from '../http/route.ts'

export function renderDocument(version: string, routes: readonly Route[]): Html {
  const rows = routes.flatMap((route) =>
    route.doc === undefined ? [] : [renderRow(route, route.doc.summary, route.doc.query ?? {})],
  )
  return html`<p class="prose">
      What flasher-web ${version} answers to programs. Errors are <code>{"detail": …}</code>; a body
      that is not what it must be is answered with 422 and a list that names each field. Where a
      scope stands, send the session cookie or <code>Authorization: Bearer</code> with a token that
      has it. The same for programs: <a href="/openapi.json">openapi.json</a>.
    </p>
    <div class="table">
      <table>
        <caption class="spoken">
          All routes
        </caption>
        <thead>
          <tr>
            <th scope="col">Request</th>
            <th scope="col">Scope</th>
            <th scope="col">What it does</th>
          </tr>
        </thead>
        <tbody>
          ${rows}
        </tbody>
      </table>
    </div>`
}

function renderRow(route: Route, summary: string, query: Readonly<Record<string, string>>): Html {
  const access: Access = typeof route.access === 'function' ? route.access() : route.access
  const terms = Object.entries(query).map(
    ([name, meaning]) => html`<div class="small dim"><code>${name}</code> ${meaning}</div>`,
  )
  return html`<tr>
    <td class="nowrap"><code>${route.method} ${route.path}</code></td>
    <td>${access === 'open' ? '–' : access}</td>
    <td>${summary}${terms}</td>
  </tr>`
}
