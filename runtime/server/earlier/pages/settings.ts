/** /ui/settings and /ui/account: what this line adds to the pages of both lines. */
import { renderError } from '../../../kit/foundation/fault.ts'
import { printable } from '../../../kit/foundation/printable.ts'
import { fill } from '../../../kit/texts/text.ts'
import type { Answer } from '../../../kit/web/answers/answers.ts'
import { banner, card, copyable, copyBlock } from '../../../kit/web/ui/elements.ts'
import { fillHtml, html, type Html } from '../../../kit/web/ui/html.ts'
import { accountPages } from '../../pages/account/account.ts'
import { pageAt } from '../../pages/context-routes.ts'
import { FILE_POSTS } from '../../pages/settings/file-posts.ts'
import { SETTINGS_PATH } from '../../pages/settings/after-post.ts'
import { showSettings, type SettingsView } from '../../pages/settings/settings-list.ts'
import { PAGES } from '../../texts/texts.ts'
import type { EarlierContext } from './page-context.ts'
import { renderPxeCard } from './pxe.ts'

const t = PAGES.earlier.settings

export const SETTINGS_PAGES = [
  pageAt(SETTINGS_PATH, show),
  ...FILE_POSTS,
  ...accountPages(renderAuthentication),
]

async function show(context: EarlierContext): Promise<Answer> {
  return await showSettings(context, async (view) => ({
    first: {
      tabs: [
        [t.authentication.title, '#authentication'],
        [PAGES.earlier.pxe.title, '#pxe'],
        [t.boot.title, '#bootstrap'],
        [t.key.title, '#ssh-key'],
      ],
      content: await renderCards(context, view),
    },
    last: { tabs: [], content: null },
  }))
}

async function renderCards(context: EarlierContext, { search }: SettingsView): Promise<Html> {
  const boot = card({
    title: t.boot.title,
    id: 'bootstrap',
    body: html`<p>${t.boot.text}</p>
      <p>${copyable(`${context.contact().baseUrl}/pxe-bootstrap.ipxe`)}</p>`,
  })
  return html`${search.wrap(t.keywords.authentication, renderAuthentication(context))}
  ${search.wrap(t.keywords.pxe, await renderPxeCard(context))} ${search.wrap(t.keywords.boot, boot)}
  ${search.wrap(t.keywords.key, await renderKey(context))}`
}

/** The public half, made with the private one where there was none. */
async function renderKey({ services }: EarlierContext): Promise<Html> {
  const [key] = await Promise.allSettled([services.workflows.keys.ensure()])
  return card({
    title: t.key.title,
    id: 'ssh-key',
    body:
      key.status === 'rejected'
        ? banner('failed', fill(t.key.absent, { reason: printable(renderError(key.reason)) }))
        : html`<p>
              ${fillHtml(t.key.text, {
                mode: html`<code>cijoe-online</code>`,
                file: html`<code>/root/.ssh/authorized_keys</code>`,
              })}
            </p>
            ${copyBlock(key.value.publicLine, t.key.label)}`,
  })
}

function renderAuthentication({ services: { user } }: EarlierContext): Html {
  return card({
    title: t.authentication.title,
    id: 'authentication',
    body: html`<p>
        ${fillHtml(t.authentication.password, {
          user: html`<code>${printable(user)}</code>`,
          command: html`<code>passwd ${printable(user)}</code>`,
        })}
      </p>
      <p>${fillHtml(t.authentication.session, { file: html`<code>session-secret</code>` })}</p>
      <p class="dim">${t.authentication.open}</p>`,
  })
}
