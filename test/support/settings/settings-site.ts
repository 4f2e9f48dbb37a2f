/** A server whose settings page is asked by a test, and what the page shows. */
import { createServerHome, login } from '../server/flasher-web.ts'

export const PASSWORD = 'secret words'

/** A home in which a server is started as often as a test likes. */
export async function openSettingsSite(env: Readonly<Record<string, string>> = {}) {
  const stack = new AsyncDisposableStack()
  const home = stack.use(await createServerHome())
  const start = async (argv: readonly string[] = []) => {
    const server = await home.start(argv, { FLASHER_ADMIN_PASSWORD: PASSWORD, ...env })
    const { cookie } = await login(server.url, PASSWORD)
    const ask = (path: string, init: RequestInit = {}) =>
      fetch(`${server.url}${path}`, { redirect: 'manual', ...init, headers: { cookie } })
    return {
      ask,
      page: async (query = '') => await (await ask(`/ui/settings${query}`)).text(),
      post: (path: string, fields: Readonly<Record<string, string>>) =>
        ask(path, { method: 'POST', body: new URLSearchParams(fields) }),
      /** The query of the page that a browser is sent to. */
      async refused(path: string, fields: Readonly<Record<string, string>>) {
        const answer = await fetch(`${server.url}${path}`, {
          method: 'POST',
          redirect: 'manual',
          headers: { cookie, accept: 'text/html' },
          body: new URLSearchParams(fields),
        })
        return (answer.headers.get('location') ?? '').replace(/^[^?]*|#.*$/g, '')
      },
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    }
  }
  return { home, start, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

/** The row of a setting, as HTML. */
export const fieldOf = (page: string, name: string) => {
  const [, id = ''] = new RegExp(`<li class="setting" id="(${name})"`).exec(page) ?? []
  const [row = ''] = page.slice(page.indexOf(`id="${id}"`)).split('</li>', 1)
  return row
}

/** The settings and forms that are shown, by their keywords. */
export const shownIn = (page: string) =>
  [
    ...page.matchAll(
      /<(?:li|div)(?: class="setting" id="([^"]*)")?[^>]*data-keywords="[^"]*"([^>]*)>/g,
    ),
  ]
    .filter(([, , rest = '']) => !rest.includes('hidden'))
    .flatMap(([, name]) => name ?? [])
