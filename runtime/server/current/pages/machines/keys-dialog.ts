/** The keyboard shortcuts of the machines page. */
import { PAGES } from '../../../texts/texts.ts'
import { fillHtml, html } from '../../../../kit/web/ui/html.ts'

const t = PAGES.machines.keys

const KEYS = [
  ['/', t.search],
  ['j k', t.move],
  ['x', t.select],
  ['Enter', t.open],
  ['a', t.assign],
  ['f', t.flash],
  ['Esc', t.clear],
  ['?', t.help],
] as const

const EXAMPLES = [
  'mode:flash-once',
  'label:rack-1',
  'state:armed,running',
  'image:debian*',
  'seen:<1h',
  'flashed:never',
  'is:locked',
] as const

export const keysDialog = html`<dialog id="keys" aria-labelledby="keys-title">
  <div class="stack">
    <h2 id="keys-title">${t.title}</h2>
    <dl class="facts">
      ${KEYS.map(
        ([keys, what]) =>
          html`<dt>${keys.split(' ').map((key) => html`<kbd>${key}</kbd> `)}</dt>
            <dd>${what}</dd>`,
      )}
    </dl>
    <h2>${t.searchTitle}</h2>
    <p class="small">
      ${fillHtml(t.searchText, {
        examples: EXAMPLES.map((each, at) => html`${at === 0 ? '' : ' '}<code>${each}</code>`),
        minus: html`<code>-</code>`,
      })}
    </p>
    <button type="button" data-close>${t.close}</button>
  </div>
</dialog>`
