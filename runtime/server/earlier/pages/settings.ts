/** /ui/settings and /ui/account: what this line adds to the pages of both lines. */
import { renderError } from '#kit/foundation/fault.ts'
import { printable } from '#kit/foundation/printable.ts'
import { fill } from '#kit/texts/text.ts'
import type { Answer } from '#kit/web/answers/answers.ts'
import { banner, card, copyable, copyBlock } from '#kit/web/ui/elements.ts'
import { fillHtml, html, type Html } from '#kit/web/ui/html.ts'
import { accountPages } from '#server/pages/account/account.ts'
import { pageAt } from '#server/pages/context-routes.ts'
import { filePosts } from '#server/pages/settings/file-posts.ts'
import { SETTINGS_PATH } from '#server/pages/settings/after-post.ts'
import { showSettings, type SettingsView } from '#server/pages/settings/settings-list.ts'
import { PAGES } from '#server/texts/texts.ts'
import type { EarlierContext } from './page-context.ts'
import { renderPxe } from './pxe.ts'

const t = PAGES.earlier.settings

export const SETTINGS_PAGES = [
  pageAt(SETTINGS_PATH, show),
  ...filePosts(),
  ...accountPages((context: EarlierContext) =>
    card({
      title: t.authentication.title,
      id: 'authentication',
      body: renderAuthentication(context),
    }),
  ),
]

async function show(context: EarlierContext): Promise<Answer> {
  return await showSettings(context, async (view) => ({
    first: null,
    fields: null,
    last: card({ title: t.title, id: 'this-server', body: await renderCards(context, view) }),
  }))
}

async function renderCards(context: EarlierContext, { search }: SettingsView): Promise<Html> {
  const boot = html`<p>${t.boot.text}</p>
    <p>${copyable(`${context.contact().baseUrl}/pxe-bootstrap.ipxe`)}</p>`
  const { authentication, key } = t
  return html`${search.fold(t.keywords.authentication, { title: authentication.title, id: 'authentication', body: renderAuthentication(context) })}
  ${search.fold(t.keywords.pxe, { title: PAGES.earlier.pxe.title, id: 'pxe', ...(await renderPxe(context)) })}
  ${search.fold(t.keywords.boot, { title: t.boot.title, id: 'bootstrap', body: boot })}
  ${search.fold(t.keywords.key, { title: key.title, id: 'ssh-key', body: await renderKey(context) })}`
}

/** Creates the key pair where there is none. */
async function renderKey({ services }: EarlierContext): Promise<Html> {
  const [key] = await Promise.allSettled([services.workflows.keys.ensure()])
  return key.status === 'rejected'
    ? banner('failed', fill(t.key.absent, { reason: printable(renderError(key.reason)) }))
    : html`<p>
          ${fillHtml(t.key.text, {
            mode: html`<code>cijoe-online</code>`,
            file: html`<code>/root/.ssh/authorized_keys</code>`,
          })}
        </p>
        ${copyBlock(key.value.publicLine, t.key.label)}`
}

const renderAuthentication = ({ services: { user } }: EarlierContext): Html =>
  html`<p>
      ${fillHtml(t.authentication.password, {
        user: html`<code>${printable(user)}</code>`,
        command: html`<code>passwd ${printable(user)}</code>`,
      })}
    </p>
    <p>${fillHtml(t.authentication.session, { file: html`<code>session-secret</code>` })}</p>
    <p class="dim">${t.authentication.open}</p>`
