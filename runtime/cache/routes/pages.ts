/** The pages under `/ui` and what their forms do; all of it works without a script. */
import type { H3Event } from 'h3'
import { Fault, renderError } from '../../core/foundation/fault.ts'
import type { FieldError } from '../../core/foundation/field-error.ts'
import { importCatalog, isManifestUrl } from '../../services/cache/catalog-imports.ts'
import { page, seeOther } from '../../web/http/answers.ts'
import { refuse } from '../../web/http/faults.ts'
import { postButton } from '../../web/ui/fields.ts'
import { address, html } from '../../web/ui/html.ts'
import type { Route } from '../../web/http/route.ts'
import type { CachePages } from '../pages/frame.ts'
import { type AddForm, EMPTY_FORM, renderImages } from '../pages/images.ts'
import { countsOf, messagesOf } from '../pages/messages.ts'
import { renderRemoval } from '../pages/removal.ts'
import type { CacheSite } from './site.ts'

const HOME = '/ui/dashboard'

export function pageRoutes(site: CacheSite, pages: CachePages): readonly Route[] {
  const { cache, log } = site

  async function show(event: H3Event, form: AddForm, status = 200) {
    const rows = cache.rows()
    const view = {
      rows,
      space: await cache.space(),
      folder: site.folder,
      clock: { now: site.now(), zone: 'UTC' },
      form,
    }
    const body = pages.render(event, {
      title: 'Images',
      count: rows.length,
      section: HOME,
      actions: html`<a class="button primary" href="#add">Add an image</a>`,
      messages: messagesOf(event.url.searchParams, form),
      body: renderImages(view),
    })
    return page(body, status)
  }

  async function add(event: H3Event, form: URLSearchParams) {
    const values = valuesOf(form)
    const fail = (errors: AddForm['errors']) => show(event, { values, errors }, 422)
    if (isManifestUrl(values['src'] ?? '')) return addCatalog(values['src'] ?? '', fail)
    const added = await cache.add(values)
    if (!added.ok) {
      return fail(
        added.refusal.why === 'taken'
          ? { name: `another image is called ${added.refusal.name}` }
          : byField(added.refusal.errors),
      )
    }
    const { name } = added.value
    await cache.download(name, { force: false })
    return seeOther(address(HOME, { added: name }))
  }

  async function addCatalog(url: string, fail: (errors: AddForm['errors']) => Promise<unknown>) {
    try {
      const imported = await importCatalog(cache, url, site.env)
      for (const flaw of imported.flaws) log.warn(`catalog: ${flaw}`)
      return seeOther(address(HOME, countsOf(imported)))
    } catch (thrown) {
      if (!(thrown instanceof Fault)) throw thrown
      return fail({ src: renderError(thrown) })
    }
  }

  async function fetchAgain(_event: H3Event, form: URLSearchParams) {
    await cache.download(nameIn(form), { force: true })
    return seeOther(HOME)
  }

  async function cancel(_event: H3Event, form: URLSearchParams) {
    await cache.cancel(nameIn(form))
    return seeOther(HOME)
  }

  function ask(event: H3Event) {
    const name = event.url.searchParams.get('name') ?? ''
    const row = cache.rows().find(({ entry }) => entry.name === name)
    if (row === undefined) throw refuse(404, `no image is called ${name}`)
    const title = 'Remove an image'
    return page(pages.render(event, { title, section: HOME, body: renderRemoval(row) }))
  }

  async function remove(_event: H3Event, form: URLSearchParams) {
    const name = nameIn(form)
    await cache.remove(name, { force: form.has('force') })
    return seeOther(address(HOME, { removed: name }))
  }

  const account = (event: H3Event) =>
    page(
      pages.render(event, {
        title: 'Account',
        section: '/ui/account',
        body: html`<p>You are logged in as the operator.</p>
          ${postButton({ action: '/ui/logout', label: 'Log out' })}`,
      }),
    )

  const read = { method: 'GET', access: 'page' } as const
  const write = { method: 'POST', access: 'page', takes: 'form' } as const
  return [
    { ...read, path: HOME, handle: (event) => show(event, EMPTY_FORM) },
    { ...read, path: '/ui/remove', handle: ask },
    { ...read, path: '/ui/account', handle: account },
    { ...write, path: '/ui/add', handle: add },
    { ...write, path: '/ui/fetch', handle: fetchAgain },
    { ...write, path: '/ui/cancel', handle: cancel },
    { ...write, path: '/ui/remove', handle: remove },
  ]
}

const nameIn = (form: URLSearchParams): string => form.get('name') ?? ''

/** Empty fields are as good as none. */
const valuesOf = (form: URLSearchParams): Readonly<Record<string, string>> =>
  Object.fromEntries(
    ['src', 'name', 'sha256'].flatMap((name) => {
      const value = form.get(name)?.trim() ?? ''
      return value === '' ? [] : [[name, value]]
    }),
  )

const byField = (errors: readonly FieldError[]): Readonly<Record<string, string>> =>
  Object.fromEntries(errors.map(({ loc, msg }) => [String(loc[1] ?? 'src'), msg]))
