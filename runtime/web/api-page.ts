/** The API document as a page: the route table for people, with nothing loaded from outside. */
import { html } from 'hono/html'
import type { Access, Route } from './route.ts'

export function documentPage(version: string, routes: readonly Route[]): string {
  const rows = routes.flatMap((route) =>
    route.doc === undefined ? [] : [renderRow(route, route.doc.summary, route.doc.query ?? {})],
  )
  return String(
    html`<!doctype html>
      <html lang="en">
        <head>
          <meta charset="utf-8" />
          <meta name="viewport" content="width=device-width, initial-scale=1" />
          <meta name="color-scheme" content="light dark" />
          <title>API of flasher-web ${version}</title>
          <link rel="stylesheet" href="/docs/api.css" />
        </head>
        <body>
          <main>
            <h1>API of flasher-web ${version}</h1>
            <p>
              Errors are <code>{"detail": …}</code>; a body that is not what it must be is answered
              with 422 and a list that names each field. Where a scope stands, send the session
              cookie or <code>Authorization: Bearer</code> with a token that has it. The same for
              programs: <a href="/openapi.json">openapi.json</a>.
            </p>
            <table>
              <caption>
                All routes
              </caption>
              <thead>
                <tr>
                  <th scope="col">Request</th>
                  <th scope="col">Scope</th>
                  <th scope="col">What it does</th>
                  <th scope="col">Query</th>
                </tr>
              </thead>
              <tbody>
                ${rows}
              </tbody>
            </table>
          </main>
        </body>
      </html>`,
  )
}

/** Its own, since it must look the same whatever the pages look like. */
export const DOCUMENT_STYLE = `
:root { color-scheme: light dark; font: 14px/1.5 system-ui, sans-serif }
body { margin: 24px }
main { max-width: 1100px; margin: 0 auto }
p { max-width: 72ch }
table { border-collapse: collapse; width: 100% }
caption { text-align: start; padding: 8px 0 }
th, td { text-align: start; vertical-align: top; padding: 8px; border-top: 1px solid GrayText }
code { font: 13px/1.5 ui-monospace, monospace; overflow-wrap: anywhere }
`

function renderRow(route: Route, summary: string, query: Readonly<Record<string, string>>) {
  const access: Access = typeof route.access === 'function' ? route.access() : route.access
  const terms = Object.entries(query).map(
    ([name, meaning]) => html`<div><code>${name}</code> ${meaning}</div>`,
  )
  return html`<tr>
    <td><code>${route.method} ${route.path}</code></td>
    <td>${access === 'open' ? '–' : access}</td>
    <td>${summary}</td>
    <td>${terms}</td>
  </tr>`
}
