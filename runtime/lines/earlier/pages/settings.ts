/** /ui/settings and /ui/account: what is set where, and the end of a session. */
import type { H3Event, HTTPResponse } from 'h3'
import { renderError } from '../../../core/foundation/fault.ts'
import { printable } from '../../../core/foundation/printable.ts'
import { banner, card, copyable, copyBlock, factList } from '../../../web/ui/elements.ts'
import { postButton } from '../../../web/ui/fields.ts'
import { html, type Html } from '../../../web/ui/html.ts'
import type { Route } from '../../../web/http/route.ts'
import { decideFolders } from '../assembly/configuration.ts'
import { messageOf, pageRoute, type PageContext } from './frame/page-context.ts'

const PATH = '/ui/settings'
const ACCOUNT = '/ui/account'

export const settingsPages = (context: PageContext): readonly Route[] => [
  pageRoute(PATH, (event) => showSettings(context, event)),
  pageRoute(ACCOUNT, (event) => showAccount(context, event)),
]

async function showSettings(context: PageContext, event: H3Event): Promise<HTTPResponse> {
  const key = await renderKey(context)
  return await context.show(event, {
    title: 'Settings',
    section: PATH,
    messages: messageOf(context, event),
    body: html`${renderAuthentication(context)}
    ${card({
      title: 'Network boot',
      id: 'pxe',
      body: html`<p>Point the DHCP server at the bootstrap script, for machines that run iPXE:</p>
        <p>${copyable(`${context.site.contact(event).baseUrl}/pxe-bootstrap.ipxe`)}</p>`,
    })}
    ${key} ${card({ title: 'Folders and release site', body: renderPlaces(context) })}`,
  })
}

/** The public half, made with the private one where there was none. */
async function renderKey({ services }: PageContext): Promise<Html> {
  const [key] = await Promise.allSettled([services.workflows.keys.ensure()])
  return card({
    title: 'SSH key for workflows',
    id: 'ssh-key',
    body:
      key.status === 'rejected'
        ? banner('failed', `There is no key: ${printable(renderError(key.reason))}.`)
        : html`<p>
              The mode <code>cijoe-online</code> logs in to machines as root with this key. Their
              images must have it in <code>/root/.ssh/authorized_keys</code>.
            </p>
            ${copyBlock(key.value.publicLine, 'Public key')}`,
  })
}

const renderAuthentication = ({ user }: PageContext): Html =>
  card({
    title: 'Authentication',
    id: 'authentication',
    body: html`<p>
        The password of the user <code>${printable(user)}</code> on the server protects these pages
        and the API. Change it there with <code>passwd ${printable(user)}</code>.
      </p>
      <p>
        A session ends after seven days without use. Deleting <code>session-secret</code> in the
        state directory ends all sessions.
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
    body: renderAuthentication(context),
  })
