/** A part of the settings page that is folded until somebody opens it, a link leads into it, or the search finds something in it. */
import { attributes, html, type Content, type Html } from '../../../kit/web/ui/html.ts'

interface Fold {
  readonly title: string
  /** What links lead to. It is within, because browsers open what holds the target of a link. */
  readonly id: string
  /** What it holds, in one line. */
  readonly about?: Content
  /** Beside its title: how it stands. */
  readonly aside?: Content
  readonly isOpen: boolean
  /** Whether the search has opened it: it is folded again when the search is cleared. */
  readonly isFound: boolean
  /** What the search finds it by, where it is found as a whole. */
  readonly keywords?: string
  readonly isHidden?: boolean
  readonly body: Content
}

/** Renders the part with its title line, which opens it without a script. */
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
