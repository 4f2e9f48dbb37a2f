/** /ui/cache: leads to the images page of the cache service and back, or says why it cannot. */
import type { Answer } from '#kit/web/answers/answers.ts'
import { renderCacheBase, replaceLoopback } from '#engine/catalog/rules/cache-entry.ts'
import { settle } from '#kit/host/watch.ts'
import { json, seeOther } from '#kit/web/answers/answers.ts'
import { peerOf } from '#kit/web/answers/caller.ts'
import { localPath } from '#kit/web/answers/checked.ts'
import { banner, card, copyBlock } from '#kit/web/ui/elements.ts'
import { textField } from '#kit/web/ui/fields.ts'
import { address, fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { FRAME_PATH, IMAGES, type ServerFrame } from '#kit/web/ui/rules/sections.ts'
import { saveSettings } from '#server/current/assembly/configuration.ts'
import { formAt, pageAt } from '#server/pages/context-routes.ts'
import type { CurrentContext } from '#server/current/view/page-context.ts'

const MAX_WAIT_MS = 3000
const SETTING = 'withcache.url'

export const CACHE_PAGES = [
  pageAt(IMAGES, 'read', lead, { reach: 'shared' }),
  pageAt(`${IMAGES}/back`, 'read', leadBack, { reach: 'shared' }),
  pageAt(FRAME_PATH, 'read', showFrame, { reach: 'shared' }),
  formAt(IMAGES, 'admin', connect, { reach: 'shared' }),
]

/** The cache has its own pages, and gets our address for their links. */
async function lead(context: CurrentContext): Promise<Answer> {
  await refresh(context)
  const page = pageOf(context)
  const { error } = context.site.catalog.snapshot()
  const isConnected = context.query.has('connected')
  if (page !== null && error === null && !isConnected) return seeOther(page)
  return await context.show({
    title: 'Images',
    learn: 'cache.html',
    messages: context.message(),
    body: renderState(context, page, error),
  })
}

/** With a fresh catalog, so that a new image can be selected at once. */
async function leadBack(context: CurrentContext): Promise<Answer> {
  await refresh(context)
  return seeOther(localPath(context.query.get('to')))
}

async function showFrame(context: CurrentContext): Promise<Answer> {
  const { nav, ...counts } = await context.readFrame()
  const open = nav.flatMap(({ tabs = [] }) => tabs.map(({ href }) => href))
  return json({ open, ...counts } satisfies ServerFrame)
}

const refresh = ({ site }: CurrentContext) => settle(site.catalog.refresh(), MAX_WAIT_MS)

/** As the browser reaches it: a cache beside the server has a loopback address. */
function pageOf(context: CurrentContext): string | null {
  const base = renderCacheBase(context.services.cacheUrl() ?? '')
  if (base === '') return null
  const { baseUrl } = peerOf(context.event)
  const page = address(`${base}/ui/dashboard`, { server: baseUrl })
  return replaceLoopback(page, new URL(baseUrl).hostname)
}

function renderState(context: CurrentContext, page: string | null, error: string | null): Content {
  if (page === null) return renderUnset(context)
  return error === null ? renderConnected(page) : renderSilent(context, page, error)
}

/** A link, because browsers let no form lead to another site. */
const renderConnected = (page: string): Html =>
  card({
    title: 'Connected',
    body: html`<p>The cache service answers.</p>
      <p><a class="button primary" href="${page}">Open the images</a></p>`,
  })

const COMMAND = 'The command that starts the cache service'

const renderUnset = (context: CurrentContext): Html =>
  card({
    title: 'Connect a cache service',
    body: html`<p>
        ${fillHtml('Images are kept by {program}, which downloads each once and serves it to all machines. Start it here or on another host:', { program: html`<code>flasher-cache</code>` })}
      </p>
      ${copyBlock('flasher-cache', COMMAND)} ${renderForm(context)}`,
  })

const renderSilent = (context: CurrentContext, page: string, error: string | null): Content => [
  banner('failed', html`The cache service is unavailable: ${error}.`),
  card({
    title: 'Cache service',
    body: html`<p>Is it running? This command starts it:</p>
      ${copyBlock('flasher-cache', COMMAND)}
      <div class="row">
        <a class="button primary" href="${IMAGES}">Try again</a>
        <a class="button" href="${page}">Open its page anyway</a>
      </div>
      ${renderForm(context)}`,
  }),
]

/** Read-only where the environment sets it. */
function renderForm(context: CurrentContext): Content {
  const { config } = context.services
  const origin = config.originOf('withcache', 'url')
  if (origin?.by === 'environment') {
    return html`<p class="dim">
      ${fillHtml('The address of the cache service is set by the environment variable {variable}.', { variable: html`<code>${origin.variable}</code>` })}
    </p>`
  }
  const notice = context.notice()
  return html`<form method="post" action="${IMAGES}">
    ${textField({
      name: 'url',
      label: 'Address of the cache service',
      value: notice?.typed['url'] ?? config.current().withcache.url,
      placeholder: 'http://192.0.2.10:8081',
      error: notice?.error ?? null,
      mono: true,
    })}
    <button>Connect</button>
  </form>`
}

async function connect(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  const { services, site } = context
  const url = form.get('url') ?? ''
  const saved = await saveSettings(services, { [SETTING]: url })
  if (!saved.ok) return context.goBack(IMAGES, { error: saved.refusal.error, typed: { url } })
  const note = {
    kind: 'settings.upstream.updated',
    subject_kind: 'settings',
    summary: 'The address of the cache service was changed',
    details: saved.value,
  } as const
  await site.recordAll([note], { subject_id: null, ...context.by() })
  return context.goTo(`${IMAGES}?connected`)
}
