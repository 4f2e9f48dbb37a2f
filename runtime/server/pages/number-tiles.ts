/** The numbers of a dashboard: each is a link, and can say how it moved. */
import { renderNumber } from '#kit/foundation/text.ts'
import { html, type Html } from '#kit/web/ui/html.ts'

export interface Tile {
  readonly title: string
  readonly count: number
  readonly href: string
  /** Null: nothing to compare with. */
  readonly trend: string | null
}

export const renderTiles = (tiles: readonly Tile[]): Html =>
  html`<div class="numbers">
    ${tiles.map(
      ({ title, count, href, trend }) =>
        html`<a class="card" href="${href}"
          ><strong>${renderNumber(count)}</strong><span class="dim">${title}</span>${
            trend === null ? null : html`<span class="trend dim">${trend}</span>`
          }</a
        >`,
    )}
  </div>`
