/** The keyboard shortcuts of the machines page. */
import { html } from '../../../../web/ui/html.ts'

const KEYS = [
  ['/', 'search'],
  ['j k', 'next and previous machine'],
  ['x', 'select'],
  ['Enter', 'open'],
  ['a', 'assign an image and a disk'],
  ['f', 'flash the selected machines, or this one'],
  ['Esc', 'clear selection'],
  ['?', 'show this help'],
] as const

export const keysDialog = html`<dialog id="keys" aria-labelledby="keys-title">
  <div class="stack">
    <h2 id="keys-title">Keyboard shortcuts</h2>
    <dl class="facts">
      ${KEYS.map(
        ([keys, what]) =>
          html`<dt>${keys.split(' ').map((key) => html`<kbd>${key}</kbd> `)}</dt>
            <dd>${what}</dd>`,
      )}
    </dl>
    <h2>Search</h2>
    <p class="small">
      Terms match names, labels, images, serial numbers and addresses. Fields narrow the search:
      <code>mode:flash-once</code> <code>label:rack-1</code> <code>state:armed,running</code>
      <code>image:debian*</code> <code>seen:&lt;1h</code> <code>flashed:never</code>
      <code>is:locked</code>; prefix with <code>-</code> to exclude.
    </p>
    <button type="button" data-close>Close</button>
  </div>
</dialog>`
