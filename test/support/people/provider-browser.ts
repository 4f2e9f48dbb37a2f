/** What a browser does in a login with a provider, without one: it keeps cookies, follows, and fills in the provider's page. */
import * as assert from 'uvu/assert'
import type { CurrentServer } from './current-server.ts'
import type { OpenIdProvider } from './openid-provider.ts'

/** Where tests reach the server, which listens nowhere. */
export const ORIGIN = 'http://flasher.test:8080'

/** Creates one; `servers` answer in turn, as behind a balancer. */
export function createProviderBrowser(
  { issuer }: Pick<OpenIdProvider, 'issuer'>,
  ...servers: readonly CurrentServer[]
) {
  const own = new Map<string, string>()
  const theirs = new Map<string, string>()
  let turn = 0

  /** Asks a server of ours. `isFromElsewhere`: Strict cookies stay away. */
  async function ask(path: string, init: RequestInit = {}, isFromElsewhere = false) {
    const server = servers[turn % servers.length]
    turn += 1
    const sent = new Map([...own].filter(([name]) => !isFromElsewhere || name !== 'flasher-token'))
    const headers = { cookie: render(sent) }
    const answer = await server?.request(path, { ...init, headers, redirect: 'manual' })
    if (answer === undefined) throw new Error('there is no server')
    keep(own, answer)
    return answer
  }

  async function askProvider(address: string, init: RequestInit = {}) {
    const headers = { cookie: render(theirs) }
    const answer = await fetch(new URL(address, issuer), { ...init, headers, redirect: 'manual' })
    keep(theirs, answer)
    return answer
  }

  /** Goes from the login page to the provider; resolves to its address with the request. */
  async function begin(next = '/ui/machines', more = ''): Promise<string> {
    const answer = await ask(`/ui/login/openid?next=${encodeURIComponent(next)}${more}`)
    assert.is(answer.status, 303, await answer.text())
    return answer.headers.get('location') ?? ''
  }

  /** At the provider, as a person; resolves to where it sends the browser back to. */
  async function visit(address: string, account: string): Promise<string> {
    let at = address
    for (let hops = 0; hops < 12; hops++) {
      if (at.startsWith(ORIGIN)) return at
      const isForm = at.includes('/interaction/')
      const form: RequestInit = { method: 'POST', body: new URLSearchParams({ account }) }
      const answer = await askProvider(at, isForm ? form : {})
      const to = answer.headers.get('location')
      if (to === null) throw new Error(`${answer.status}: ${await answer.text()}`)
      at = new URL(to, issuer).href
    }
    throw new Error('the provider goes in circles')
  }

  /** Back at our server: the page that sends on, and what follows. */
  async function comeBack(address: string): Promise<Response> {
    const { pathname, search } = new URL(address)
    const between = await ask(`${pathname}${search}`, {}, true)
    const text = await between.text()
    assert.is(between.status, 200, text)
    const [, onward = ''] = /http-equiv="refresh" content="0; url=([^"]+)"/.exec(text) ?? []
    return await ask(onward.replaceAll('&amp;', '&'))
  }

  return {
    cookies: own,
    ask,
    begin,
    visit,
    comeBack,
    /** The whole way. */
    async logIn(account: string, next = '/ui/machines'): Promise<Response> {
      return await comeBack(await visit(await begin(next), account))
    },
    forgetProvider: () => theirs.clear(),
  }
}

export type ProviderBrowser = ReturnType<typeof createProviderBrowser>

function keep(jar: Map<string, string>, answer: Response): void {
  for (const line of answer.headers.getSetCookie()) {
    const [pair = '', ...attributes] = line.split('; ')
    const at = pair.indexOf('=')
    const [name, value] = [pair.slice(0, at), pair.slice(at + 1)]
    const isGone = attributes.some((each) => /^max-age=0$|^expires=thu, 01 jan 1970/i.test(each))
    if (isGone || value === '') jar.delete(name)
    else jar.set(name, value)
  }
}

const render = (jar: ReadonlyMap<string, string>) =>
  [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
