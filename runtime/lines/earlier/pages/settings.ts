/** /ui/settings and /ui/account: what is set where, and the end of a session. */
import type { H3Event, HTTPResponse } from 'h3'
import { card, copyable, factList } from '../../../web/ui/elements.ts'
import { postButton } from '../../../web/ui/fields.ts'
import { html, type Html } from '../../../web/ui/html.ts'
import type { Route } from '../../../web/http/route.ts'
import { decideFolders } from '../assembly/configuration.ts'
import { messageOf, pageRoute, type PageContext } from './frame/page-context.ts'
import { renderPxeCard } from './pxe.ts'

const PATH = '/ui/settings'
const ACCOUNT = '/ui/account'

export const settingsPages = (context: PageContext): readonly Route[] => [
  pageRoute(PATH, (event) => showSettings(context, event)),
  pageRoute(ACCOUNT, (event) => showAccount(context, event)),
]

const showSettings = async (context: PageContext, event: H3Event): Promise<HTTPResponse> =>
  context.show(event, {
    title: 'Settings',
    section: PATH,
    messages: messageOf(context, event),
    body: html`${renderAuthentication()} ${await renderPxeCard(context)}
    ${card({
      title: 'Network boot',
      id: 'bootstrap',
      body: html`<p>Point the DHCP server at the bootstrap script, for machines that run iPXE:</p>
        <p>${copyable(`${context.site.contact(event).baseUrl}/pxe-bootstrap.ipxe`)}</p>`,
    })}
    ${card({ title: 'Folders and release site', body: renderPlaces(context) })}`,
  })

const renderAuthentication = (): Html =>
  card({
    title: 'Authentication',
    id: 'authentication',
    body: html`<p>
        One password protects these pages and the API. A session ends after seven days without use.
        Deleting <code>session-secret</code> in the state directory ends all sessions.
      </p>
      <p class="dim">
        Boot scripts, boot files and images are open to everyone who can reach this server, because
        booting machines cannot log in.
      </p>`,
  })

function renderPlaces({ services: { config } }: PageContext): Html {
  const folders = decideFolders(config)
  const { boot, releases } = config.current()
  return factList([
    ['Images', html`<code>${folders.images}</code> <span class="dim">FLASHER_IMAGE_ROOT</span>`],
    ['Boot files', html`<code>${folders.boot}</code> <span class="dim">FLASHER_BOOT_DIR</span>`],
    ['State', html`<code>${folders.stateDir}</code> <span class="dim">FLASHER_STATE_DIR</span>`],
    [
      'Release site',
      html`${releases.base_url || 'not set'} <span class="dim">FLASHER_RELEASES_BASE_URL</span>`,
    ],
    [
      'Repository',
      html`${boot.release_repo || 'not set'} <span class="dim">FLASHER_BOOT_RELEASE_REPO</span>`,
    ],
  ])
}

const showAccount = (context: PageContext, event: H3Event): Promise<HTTPResponse> =>
  context.show(event, {
    title: 'Account',
    section: ACCOUNT,
    actions: postButton({ action: '/ui/logout', label: 'Log out' }),
    messages: messageOf(context, event),
    body: renderAuthentication(),
  })
