/** The pages under `/ui` and the handlers of their forms; all of it works without scripts. */
import type { H3Event } from 'h3'
import { Fault, renderError } from '#kit/foundation/fault.ts'
import type { FieldError } from '#kit/foundation/field-error.ts'
import { importCatalog, isManifestUrl, type ImageCache } from '#cache/store/image-cache.ts'
import { page, seeOther, type Answer } from '#kit/web/answers/answers.ts'
import { boundsOf, callerOf, peerOf, type LogSink } from '#kit/web/answers/caller.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { postButton } from '#kit/web/ui/fields.ts'
import { address, fillHtml, html } from '#kit/web/ui/html.ts'
import { card, factList } from '#kit/web/ui/elements.ts'
import { describeSession, nameCaller } from '#kit/web/ui/who.ts'
import { KEYS_PATH, chooseKeys, renderKeysPage } from '#kit/web/ui/keys-page.ts'
import { SECTIONS } from '#kit/web/ui/rules/sections.ts'
import { readListQuery } from '#kit/web/ui/tables.ts'
import { formRoute, pageRoute } from '#kit/web/ui/form-notices.ts'
import type { Route } from '#kit/web/answers/route.ts'
import { type CachePages, FIND_PATH, HOME } from '#cache/pages/layout.ts'
import {
  type AddForm,
  EMPTY_FORM,
  renderImages,
  countsOf,
  messagesOf,
  renderRemoval,
} from '#cache/pages/images.ts'
import { parseServerLink, renderServerCookie } from '#cache/rules/image-list.ts'
import type { Environment } from '#kit/host/shell.ts'
import { blobKeyOf } from '#engine/catalog/rules/cache-entry.ts'

export function pageRoutes(site: CacheSite, pages: CachePages): readonly Route[] {
  const { cache } = site
  const show: ShowImages = (event, form, status) => showImages(site, pages, event, form, status)
  return [
    pageRoute(HOME, 'read', (event) => rememberServer(event) ?? show(event, EMPTY_FORM)),
    pageRoute('/ui/remove', 'read', (event) => askRemoval(site, pages, event)),
    pageRoute('/ui/account', 'own', (event) => showAccount(site, pages, event)),
    pageRoute(KEYS_PATH, 'own', (event) => showKeys(pages, event)),
    pageRoute(FIND_PATH, 'own', (event) => findElsewhere(pages, event)),
    formRoute(KEYS_PATH, 'own', (_, form) => chooseKeys(form)),
    formRoute('/ui/add', 'admin', (event, form) => addImage(site, show, event, form)),
    formRoute('/ui/fetch', 'admin', async (_, form) => {
      await cache.download(nameIn(form), { force: true })
      return seeOther(HOME)
    }),
    formRoute('/ui/discard', 'admin', async (_, form) => {
      await cache.uploads.remove(form.get('id') ?? '')
      return seeOther(HOME)
    }),
    formRoute('/ui/cancel', 'admin', async (_, form) => {
      await cache.cancel(nameIn(form))
      return seeOther(HOME)
    }),
    formRoute('/ui/remove', 'admin', async (_, form) => {
      const name = nameIn(form)
      await cache.remove(name, { force: form.has('force') })
      return seeOther(address(HOME, { removed: name }))
    }),
  ]
}

function rememberServer(event: H3Event) {
  const given = event.url.searchParams.get('server') ?? ''
  const origin = parseServerLink(given, peerOf(event).host)
  return origin === null ? null : seeOther(HOME, { 'set-cookie': renderServerCookie(origin) })
}

async function showAccount({ now }: CacheSite, pages: CachePages, event: H3Event) {
  const { render, serverLink } = await pages.open(event)
  const account = serverLink('/ui/account')
  return page(
    render({
      title: 'Account',
      section: '/ui/account',
      actions: postButton({ action: '/ui/logout', label: 'Log out' }),
      body: html`<div class="columns even">
        ${card({ title: nameCaller(event), body: factList(describeSession(event, clockOf(now()))) })}
        ${card({
          title: 'Password',
          body: html`<p>
            ${account === null ? fillHtml('Change it with {command} on the host of the cache.', { command: html`<code>flasher-web password</code>` }) : fillHtml('It is the password of the server. Change it on {page}.', { page: html`<a href="${account}">your account page there</a>` })}
          </p>`,
        })}
      </div>`,
    }),
  )
}

async function showKeys(pages: CachePages, event: H3Event) {
  const { render, serverLink } = await pages.open(event)
  const hasFind = serverLink('/') !== null
  return page(
    render({
      title: 'Keyboard shortcuts',
      section: KEYS_PATH,
      body: renderKeysPage(event, { hasFind, sections: SECTIONS, examples: [] }),
    }),
  )
}

/** The search of everything is the server's. */
async function findElsewhere(pages: CachePages, event: H3Event) {
  const q = event.url.searchParams.get('q') ?? ''
  const way = (await pages.open(event)).renderWay('Search', address(FIND_PATH, { q }))
  return way === null ? seeOther(address(HOME, { q })) : page(way)
}

const clockOf = (now: Date) => ({ now, zone: 'UTC' }) as const

type ShowImages = (event: H3Event, form: AddForm, status?: number) => Promise<Answer>

async function showImages(
  { cache, folder, now }: CacheSite,
  pages: CachePages,
  event: H3Event,
  form: AddForm,
  status = 200,
) {
  const { render, serverLink } = await pages.open(event)
  const rows = cache.rows()
  const clock = clockOf(now())
  const uploads = cache.uploads.list()
  const body = render({
    title: 'Images',
    count: rows.length,
    section: HOME,
    actions:
      rows.length === 0 ? null : html`<a class="button primary" href="#add">Add an image</a>`,
    messages: messagesOf(event.url.searchParams, form, serverLink),
    body: renderImages({
      rows,
      uploads,
      captures: cache.captures.list(),
      space: await cache.space(),
      folder,
      clock,
      form,
      serverLink,
      query: readListQuery(event.url.searchParams, ['q', 'state', 'sort'], 300),
      added: event.url.searchParams.get('added'),
    }),
  })
  return page(body, status)
}

async function askRemoval({ cache }: CacheSite, pages: CachePages, event: H3Event) {
  const name = event.url.searchParams.get('name') ?? ''
  const row = cache.rows().find(({ entry }) => entry.name === name)
  if (row === undefined) throw refuse(404, `there is no image named ${name}`)
  const { render, serverLink } = await pages.open(event)
  // Who is limited to some machines is told how many there are.
  const isWhole = boundsOf(callerOf(event)) === null
  const users = isWhole ? cache.listUsers(blobKeyOf(row.entry.src) ?? '') : []
  const body = renderRemoval(row, users, serverLink)
  return page(render({ title: 'Remove an image', section: HOME, body }))
}

async function addImage(site: CacheSite, show: ShowImages, event: H3Event, form: URLSearchParams) {
  const values = valuesOf(form)
  const src = values['src'] ?? ''
  const fail = (errors: AddForm['errors']) => show(event, { values, errors }, 422)
  if (isManifestUrl(src)) return addCatalog(site, src, fail)
  const { any_content: mark, ...texts } = values
  const added = await site.cache.add({ ...texts, ...(mark === '1' ? { any_content: true } : {}) })
  if (!added.ok) {
    const { refusal } = added
    if (refusal.why === 'invalid') return fail(byField(refusal.errors))
    return fail({ name: `another image is called ${refusal.name}` })
  }
  const { name } = added.value
  await site.cache.download(name, { force: false })
  return seeOther(address(HOME, { added: name }))
}

async function addCatalog(
  { cache, env, log }: CacheSite,
  url: string,
  fail: (errors: AddForm['errors']) => Promise<Answer>,
) {
  try {
    const imported = await importCatalog(cache, url, env)
    for (const flaw of imported.flaws) log.warn(`catalog: ${flaw}`)
    return seeOther(address(HOME, countsOf(imported)))
  } catch (thrown) {
    if (!(thrown instanceof Fault)) throw thrown
    return fail({ src: renderError(thrown) })
  }
}

const nameIn = (form: URLSearchParams): string => form.get('name') ?? ''

const valuesOf = (form: URLSearchParams): Readonly<Record<string, string>> =>
  Object.fromEntries(
    ['src', 'name', 'sha256', 'index_sha256', 'any_content'].flatMap((name) => {
      const value = form.get(name)?.trim() ?? ''
      return value === '' ? [] : [[name, value]]
    }),
  )

const byField = (errors: readonly FieldError[]): Readonly<Record<string, string>> =>
  Object.fromEntries(errors.map(({ loc, msg }) => [String(loc[1] ?? 'src'), msg]))

/** The services that the cache's routes and pages share. */
export interface CacheSite {
  readonly cache: ImageCache
  now(): Date
  readonly log: LogSink
  readonly folder: string
  /** Names proxies and FLASHER_CA_FILE. */
  readonly env: Environment
}
