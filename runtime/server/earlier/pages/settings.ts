/** /ui/settings and /ui/account: what is set where, and the end of a session. */
import type { H3Event, HTTPResponse } from 'h3'
import { renderError } from '../../../kit/foundation/fault.ts'
import { printable } from '../../../kit/foundation/printable.ts'
import { banner, card, copyable, copyBlock, factList } from '../../../kit/web/ui/elements.ts'
import { postButton } from '../../../kit/web/ui/fields.ts'
import { fillHtml, html, type Html } from '../../../kit/web/ui/html.ts'
import type { Route } from '../../../kit/web/answers/route.ts'
import { decideFolders } from '../assembly/configuration.ts'
import type { PageContext } from './frame/page-context.ts'
import { pageRoute } from '../../../kit/web/ui/page-routes.ts'
import { PAGES } from '../../texts/texts.ts'
import { fill } from '../../../kit/texts/text.ts'

import { renderPxeCard } from './pxe.ts'

const t = PAGES.earlier.settings

const PATH = '/ui/settings'
const ACCOUNT = '/ui/account'

export const settingsPages = (context: PageContext): readonly Route[] => [
  pageRoute(PATH, (event) => showSettings(context, event)),
  pageRoute(ACCOUNT, (event) => showAccount(context, event)),
]

async function showSettings(context: PageContext, event: H3Event): Promise<HTTPResponse> {
  const key = await renderKey(context)
  return await context.show(event, {
    title: t.title,
    section: PATH,
    body: html`${renderAuthentication(context)} ${await renderPxeCard(context)}
    ${card({
      title: t.boot.title,
      id: 'bootstrap',
      body: html`<p>${t.boot.text}</p>
        <p>${copyable(`${context.site.contact(event).baseUrl}/pxe-bootstrap.ipxe`)}</p>`,
    })}
    ${key} ${card({ title: t.places.title, body: renderPlaces(context) })}`,
  })
}

/** The public half, made with the private one where there was none. */
async function renderKey({ services }: PageContext): Promise<Html> {
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

const renderAuthentication = ({ user }: PageContext): Html =>
  card({
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

function renderPlaces({ services: { config } }: PageContext): Html {
  const folders = decideFolders(config)
  const { boot, releases } = config.current()
  const places = [
    [t.places.images, renderPath(folders.images), 'FLASHER_IMAGE_ROOT'],
    [t.places.boot, renderPath(folders.boot), 'FLASHER_BOOT_DIR'],
    [t.places.state, renderPath(folders.stateDir), 'FLASHER_STATE_DIR'],
    [t.places.site, releases.base_url || t.places.unset, 'FLASHER_RELEASES_BASE_URL'],
    [t.places.repository, boot.release_repo || t.places.unset, 'FLASHER_BOOT_RELEASE_REPO'],
  ] as const
  return factList(
    places.map(([title, place, variable]) => [
      title,
      html`${place} <span class="dim">${variable}</span>`,
    ]),
  )
}

const renderPath = (path: string): Html => html`<code>${path}</code>`

const showAccount = (context: PageContext, event: H3Event): Promise<HTTPResponse> =>
  context.show(event, {
    title: PAGES.earlier.account.title,
    section: ACCOUNT,
    actions: postButton({ action: '/ui/logout', label: PAGES.earlier.account.logOut }),
    body: renderAuthentication(context),
  })
