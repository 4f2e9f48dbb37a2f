/** Logging in with a provider: a role from a group, a session that ends, and what is said to somebody without one. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createCurrentServer } from '../../support/people/current-server.ts'
import { startOpenIdProvider } from '../../support/people/openid-provider.ts'
import { createProviderBrowser, ORIGIN } from '../../support/people/provider-browser.ts'

const test = suite('logging in with a provider')

test('a group gives a role, a person, a session and a record', async () => {
  await using provider = await startOpenIdProvider({ origins: [ORIGIN] })
  await using server = await createCurrentServer(provider.settings)
  provider.accounts.set('u1', { preferred_username: 'Anna', groups: ['lab', 'other'] })
  const browser = createProviderBrowser(provider, server)
  const page = await (await browser.ask('/ui/login?next=/ui/events')).text()
  assert.match(page, 'Log in with Example')
  assert.match(page, 'href="/ui/login/openid?next=%2Fui%2Fevents"')
  const back = await browser.logIn('u1')
  assert.is(back.status, 303, await back.text())
  assert.is(back.headers.get('location'), '/ui/machines')
  assert.is((await browser.ask('/ui/machines')).status, 200)
  assert.is((await browser.ask('/ui/people')).status, 403)
})

test.run()
