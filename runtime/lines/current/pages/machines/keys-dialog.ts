/** What the keyboard does on the machines page. */
import { html } from '../../../../web/ui/html.ts'

const KEYS = [
  ['/', 'search'],
  ['j k', 'next and previous machine'],
  ['x', 'pick it'],
  ['Enter', 'open it'],
  ['a', 'assign an image and a disk'],
  ['f', 'flash what is picked, or this one'],
  ['Esc', 'pick nothing'],
  ['?', 'this list'],
] as const

export const keysDialog = html`<dialog id="keys" aria-labelledby="keys-title">
  <div class="stack">
    <h2 id="keys-title">Keyboard</h2>
    <dl class="facts">
      ${KEYS.map(
        ([keys, what]) =>
          html`<dt>${keys.split(' ').map((key) => html`<kbd>${key}</kbd> `)}</dt>
            <dd>${what}</dd>`,
      )}
    </dl>
    <h2>Search</h2>
    <p class="small">
      Words are looked for in names, labels, images, serials and addresses. Fields narrow it:
      <code>mode:flash-once</code> <code>label:rack-1</code> <code>state:armed,running</code>
      <code>image:debian*</code> <code>seen:&lt;1h</code> <code>flashed:never</code>
      <code>is:locked</code>; a <code>-</code> before one takes away.
    </p>
    <button type="button" data-close>Close</button>
  </div>
</dialog>`
