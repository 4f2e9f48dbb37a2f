/** The frame of the cache's pages, which is the server's where that is known, and its login and error pages. */
import type { H3Event } from 'h3'
import { addCookie } from '#kit/web/answers/answers.ts'
import type { Assets } from '#kit/web/answers/assets.ts'
import { boundsOf, callerOf, peerOf, type ErrorView } from '#kit/web/answers/caller.ts'
import { describeWho } from '#kit/web/ui/who.ts'
import { createLayout, readPlace, type PageView } from '#kit/web/ui/layout.ts'
import {
  FRAME_PATH,
  FrameSchema,
  IMAGES,
  listOpenSections,
  SECTIONS,
  type Section,
  type ServerFrame,
  type Tab,
} from '#kit/web/ui/rules/sections.ts'
import { fillHtml, html } from '#kit/web/ui/html.ts'
import type { TypedForm } from '#kit/web/ui/typed-page.ts'
import {
  renderErrorPage,
  renderLoginPage,
  renderOnward,
  renderTypedPage,
  type LoginView,
} from '#kit/web/ui/site-views.ts'
import {
  linkToServer,
  parseServerLink,
  readServerCookie,
  renderServerCookie,
} from '#cache/rules/image-list.ts'
import { listSessions, renderSessions } from '#kit/foundation/session-cookie.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { parseHttpTarget } from '#kit/net/rules/image-location.ts'
import { listOwnAddresses } from '#kit/host/own-addresses.ts'
import { askOnce } from '#kit/net/json-client.ts'
import type { Environment } from '#kit/host/shell.ts'

export const HOME = '/ui/dashboard'
/** A page waits no longer for what the server says. */
const MAX_WAIT_MS = 500
const MAX_BYTES = 16_384

export type CachePages = ReturnType<typeof createCachePages>

type OwnView = Pick<PageView, 'title' | 'section' | 'body'> &
  Partial<Pick<PageView, 'count' | 'actions' | 'messages'>>

interface CachePagesDependencies {
  readonly assets: Assets
  readonly version: string
  /** Empty: none is set. */
  serverUrl(): string
  /** The port of the server that shares this cache's state; null: there is none. */
  portBeside(): Promise<number | null>
  countWaiting(): number
  /** Names proxies and FLASHER_CA_FILE. */
  readonly env: Environment
}

export function createCachePages(parts: CachePagesDependencies) {
  const own = { version: parts.version, assetUrl: parts.assets.url, nav: OWN, hasKeys: true }
  const bare = createLayout(own)

  async function readFrame(event: H3Event) {
    const port = await parts.portBeside()
    const known = findServer(event, parts.serverUrl())
    const origin = known ?? findBeside(event, port)
    const asked = findAsked(parts.serverUrl(), known, port)
    const said = asked === null ? null : await askFrame(parts.env, asked, event)
    if (origin === null || (known === null && said === null))
      return { origin: null, nav: OWN, alarms: 0, batches: 0 }
    if (known === null) addCookie(event, renderServerCookie(origin))
    const sections =
      said === null ? SECTIONS : listOpenSections(SECTIONS, (path) => said.open.includes(path))
    return {
      ...(said ?? { alarms: 0, batches: 0 }),
      origin,
      nav: sections.map((each) => toLink(each, origin)),
    }
  }

  async function open(event: H3Event) {
    const { origin, nav, alarms, batches } = await readFrame(event)
    const layout = createLayout({
      ...own,
      ...(origin !== null && {
        find: FIND_PATH,
        isElsewhere: true,
        account: linkToServer(origin, '/ui/account'),
        docs: linkToServer(origin, '/docs/'),
      }),
    })
    // People limited to some labels do not decide on captures.
    const caller = callerOf(event)
    const waiting = boundsOf(caller) === null ? parts.countWaiting() : 0
    // Nothing to switch here, but its place.
    const foot = origin === null ? null : html`<div class="calls"></div>`
    const frame = { nav, alarms, batches, waiting, foot, who: describeWho(caller) }
    return {
      layout,
      frame,
      /** Null: the server's address is unknown. */
      serverLink: (path: string) => (origin === null ? null : linkToServer(origin, path)),
      render: (view: OwnView) => layout.page({ ...view, ...readPlace(event), ...frame }),
      /** Leads there at once; null as well. */
      renderWay: (title: string, path: string) =>
        origin === null ? null : renderOnward(layout, { title, to: `${origin}${path}` }),
    }
  }

  return {
    /** A page for one request. */
    open,
    renderTyped: (form: TypedForm) => renderTypedPage(bare, form),
    renderLogin: (view: LoginView) =>
      renderLoginPage(bare, {
        ...view,
        heading: 'flasher',
        what: 'image cache',
        label: 'Password',
        help: fillHtml(
          'It is the password of the server. On the host of the cache, {command} sets a new one.',
          { command: html`<code>flasher-web password</code>` },
        ),
      }),
    async renderError(view: ErrorView, event: H3Event) {
      if (!view.loggedIn) return renderErrorPage(bare, view)
      const { layout, frame } = await open(event)
      return renderErrorPage(layout, view, { event, mayOpen: () => true, home: HOME, ...frame })
    },
  }
}

export const FIND_PATH = '/ui/find'

const OWN: readonly Section[] = [{ href: HOME, title: 'Images', icon: 'image', key: 'i' }]

function toLink({ tabs = [], ...section }: Section, server: string): Section {
  const lead = <T extends Tab>(link: T): T => ({
    ...link,
    href: link.href === IMAGES ? HOME : linkToServer(server, link.href),
  })
  return { ...lead(section), tabs: tabs.map(lead) }
}

/** The setting wins over the latest link. */
function findServer(event: H3Event, set: string): string | null {
  if (set !== '') return set.replace(/\/+$/, '')
  const kept = readServerCookie(event.req.headers.get('cookie'))
  return kept === null ? null : parseServerLink(kept, peerOf(event).host)
}

/** Only where this cache was told, or on its own host: browsers send any address and any host. */
function findAsked(set: string, known: string | null, port: number | null): string | null {
  if (set !== '' || isOnThisHost(known)) return known
  return port === null ? null : `http://127.0.0.1:${port}`
}

const isOnThisHost = (origin: string | null): boolean =>
  origin !== null && ['localhost', ...listOwnAddresses()].includes(new URL(origin).hostname)

/** Behind a proxy, which has the usual port, nobody knows where browsers find the server. */
function findBeside(event: H3Event, port: number | null): string | null {
  const { host, isSecure } = peerOf(event)
  const url = URL.parse(`http://${host}`)
  if (url === null || url.port === '' || isSecure || port === null) return null
  url.port = String(port)
  return url.origin
}

/** Null: it does not answer, or not to this person. What only renews a part of the page shows none of it. */
async function askFrame(
  env: Environment,
  origin: string,
  event: H3Event,
): Promise<ServerFrame | null> {
  const { headers } = event.req
  const target = parseHttpTarget(`${origin}${FRAME_PATH}`)
  const isSafe = origin.startsWith('https:') || !peerOf(event).isSecure
  if (target === null || !isSafe || headers.has('hx-request')) return null
  try {
    const { status, bytes } = await askOnce(env, target, {
      headers: { cookie: renderSessions(listSessions(headers.get('cookie'))) },
      redirects: 'answer',
      maxBytes: MAX_BYTES,
      timeoutMs: MAX_WAIT_MS,
    })
    return status === 200 ? (FrameSchema.safeParse(parseJson(bytes.toString())).data ?? null) : null
  } catch {
    // A page of the cache does not need its server.
    return null
  }
}
