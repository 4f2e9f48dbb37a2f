/** /ui/cache: leads to the images page of the cache service and back, or says why it cannot. */
import type { H3Event, HTTPResponse } from 'h3'
import { renderCacheBase, replaceLoopback } from '../../../../core/catalog/blob-address.ts'
import { settle } from '../../../../services/host/watch.ts'
import { seeOther } from '../../../../web/http/answers.ts'
import { peerOf } from '../../../../web/http/caller.ts'
import { localPath } from '../../../../web/http/local-path.ts'
import type { Route } from '../../../../web/http/route.ts'
import { banner, card, copyBlock } from '../../../../web/ui/elements.ts'
import { textField } from '../../../../web/ui/fields.ts'
import { address, html, type Content, type Html } from '../../../../web/ui/html.ts'
import { IMAGES } from '../../../../web/ui/sections.ts'
import { saveSettings } from '../../assembly/saved-settings.ts'
import { goBack, goTo } from '../frame/form-answer.ts'
import { messageOf, type PageContext } from '../frame/page-context.ts'
import { formRoute, pageRoute } from '../frame/page-routes.ts'

/** A page waits so long for the cache service. */
const MAX_WAIT_MS = 3000
const SETTING = 'withcache.url'

export const cachePages = (context: PageContext): readonly Route[] => [
  pageRoute(IMAGES, (event) => lead(context, event)),
  pageRoute(`${IMAGES}/back`, (event) => leadBack(context, event)),
  formRoute(IMAGES, (event, form) => connect(context, event, form)),
]

/** The cache has pages of its own; they get the address of this server for their links. */
async function lead(context: PageContext, event: H3Event): Promise<HTTPResponse> {
  await refresh(context)
  const page = pageOf(context, event)
  const { error } = context.site.catalog.snapshot()
  const isConnected = event.url.searchParams.has('connected')
  if (page !== null && error === null && !isConnected) return seeOther(page)
  return await context.show(event, {
    title: 'Images',
    section: IMAGES,
    messages: messageOf(context, event),
    body: renderState(context, event, page, error),
  })
}

/** With the catalog as it is now, so that a new image can be picked at once. */
async function leadBack(context: PageContext, event: H3Event): Promise<HTTPResponse> {
  await refresh(context)
  return seeOther(localPath(event.url.searchParams.get('to')))
}

const refresh = ({ site }: PageContext) => settle(site.catalog.refresh(), MAX_WAIT_MS)

/** As the operator's browser reaches it: a cache beside the server is known by a loopback address. */
function pageOf(context: PageContext, event: H3Event): string | null {
  const base = renderCacheBase(context.cacheUrl() ?? '')
  if (base === '') return null
  const { baseUrl } = peerOf(event)
  const page = address(`${base}/ui/dashboard`, { server: baseUrl })
  return replaceLoopback(page, new URL(baseUrl).hostname)
}

function renderState(
  context: PageContext,
  event: H3Event,
  page: string | null,
  error: string | null,
): Content {
  if (page === null) return renderUnset(context, event)
  return error === null ? renderConnected(page) : renderSilent(context, event, page, error)
}

/** Browsers let no form lead to another site, so a link does. */
const renderConnected = (page: string): Html =>
  card({
    title: 'Connected',
    body: html`<p>The cache service answers.</p>
      <p><a class="button primary" href="${page}">Open the images</a></p>`,
  })

const renderUnset = (context: PageContext, event: H3Event): Html =>
  card({
    title: 'Connect a cache service',
    body: html`<p>
        Images are kept by <code>flasher-cache</code>, which downloads each once and serves it to
        all machines. Start it here or on another host:
      </p>
      ${copyBlock('flasher-cache', 'The command that starts the cache service')}
      ${renderForm(context, event)}`,
  })

const renderSilent = (
  context: PageContext,
  event: H3Event,
  page: string,
  error: string | null,
): Content => [
  banner('failed', html`The cache service is unavailable: ${error}.`),
  card({
    title: 'Cache service',
    body: html`<p>Is it running? This command starts it:</p>
      ${copyBlock('flasher-cache', 'The command that starts the cache service')}
      <div class="row">
        <a class="button primary" href="${IMAGES}">Try again</a>
        <a class="button" href="${page}">Open its page anyway</a>
      </div>
      ${renderForm(context, event)}`,
  }),
]

/** What the environment sets cannot be changed here. */
function renderForm({ services, site }: PageContext, event: H3Event): Content {
  const origin = services.config.originOf('withcache', 'url')
  if (origin?.by === 'environment') {
    return html`<p class="dim">
      The address of the cache service is set by <code>${origin.variable}</code>.
    </p>`
  }
  const notice = site.notices.read(event)
  return html`<form method="post" action="${IMAGES}">
    ${textField({
      name: 'url',
      label: 'Address of the cache service',
      value: notice?.typed['url'] ?? services.config.current().withcache.url,
      placeholder: 'http://192.0.2.10:8081',
      error: notice?.error ?? null,
      mono: true,
    })}
    <button>Connect</button>
  </form>`
}

async function connect(
  context: PageContext,
  event: H3Event,
  form: URLSearchParams,
): Promise<HTTPResponse> {
  const { services, site } = context
  const url = form.get('url') ?? ''
  const saved = await saveSettings(services, { [SETTING]: url })
  if (!saved.ok) return goBack(site, event, IMAGES, { error: saved.refusal.error, typed: { url } })
  const note = {
    kind: 'settings.upstream.updated',
    subject_kind: 'settings',
    summary: 'The address of the cache service was changed',
    details: saved.value,
  } as const
  await site.noteAll([note], { subject_id: null, ...site.by(event) })
  return goTo(event, `${IMAGES}?connected`)
}
