/** The search of everything: a form in the head of every page, and the dialog that a script makes of it. */
import { icon } from './elements.ts'
import { html, type Html } from './html.ts'
import { PAGES } from '../../../server/texts/texts.ts'

const t = PAGES.find.form

/** The longest text that is searched for, in characters. */
export const MAX_FIND = 200

/** Renders the form of the side bar; where that is narrow, a link to the page of the search. */
export const renderFindForm = (path: string): Html =>
  html`<form class="find" role="search" action="${path}" aria-label="${t.label}">
      <input
        type="search"
        id="find"
        name="q"
        aria-label="${t.label}"
        placeholder="${t.short}"
        maxlength="${MAX_FIND}"
        autocomplete="off"
        spellcheck="false"
        aria-keyshortcuts="Control+K"
      /><kbd class="scripted-only" aria-hidden="true">Ctrl K</kbd>
    </form>
    <a class="find-link" href="${path}" aria-label="${t.label}">${icon('search')}</a>`

/** Renders the dialog, empty: `palette.js` fills it. */
export const renderFindDialog = (path: string): Html =>
  html`<dialog id="palette" aria-label="${t.label}">
    <form action="${path}" role="search">
      <input
        type="text"
        name="q"
        role="combobox"
        aria-label="${t.label}"
        aria-expanded="false"
        aria-controls="palette-list"
        aria-autocomplete="list"
        placeholder="${t.placeholder}"
        maxlength="${MAX_FIND}"
        autocomplete="off"
        spellcheck="false"
      />
    </form>
    <div
      id="palette-list"
      role="listbox"
      aria-label="${t.list}"
      data-recent="${t.recent}"
      data-none="${t.none}"
      data-found="${t.found}"
    ></div>
  </dialog>`
