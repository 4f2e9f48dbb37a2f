/** A part of the settings page that is folded until somebody opens it, a link leads into it, or the search finds something in it. */
import { attributes, html, type Content, type Html } from '#kit/web/ui/html.ts'

interface Fold {
  readonly title: string
  /** A link's target, inside because browsers open what holds it. */
  readonly id: string
  readonly about?: Content
  readonly aside?: Content
  readonly isOpen: boolean
  /** Opened by the search, and folded again when that is cleared. */
  readonly isFound: boolean
  /** For a part that is found as a whole. */
  readonly keywords?: string
  readonly isHidden?: boolean
  readonly body: Content
}

/** Its title line opens it without a script. */
export const renderFold = (fold: Fold): Html =>
  html`<details
    class="fold"
    ${attributes({
      open: fold.isOpen || fold.isFound,
      'data-found': fold.isFound ? '' : null,
      'data-keywords': fold.keywords ?? null,
      hidden: fold.isHidden === true,
    })}
  >
    <summary>
      <h3>${fold.title}</h3>
      ${fold.about === undefined ? null : html`<span class="holds small dim">${fold.about}</span>`}
      ${fold.aside}
    </summary>
    <div id="${fold.id}" class="folded">${fold.body}</div>
  </details>`
