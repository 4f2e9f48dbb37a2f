/** A login with a provider in a real browser: the provider is another site, so what a Strict cookie does is seen. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { logIn, openBrowser, openContext, PASSWORD } from '#test/support/browser/browser.ts'
import { addAxe, checkWidth, listViolations } from '#test/support/browser/axe.ts'
import { CLIENT, startOpenIdProvider } from '#test/support/people/openid-provider.ts'
import { createServerHome } from '#test/support/server/flasher-web.ts'
import { findPort } from '#test/support/http/ports.ts'

const test = suite('the browser: logging in with a provider')

test('there and back, a page from elsewhere, no role, and the logout at the provider', async () => {
  await using stack = new AsyncDisposableStack()
  const port = String(await findPort())
  const url = `http://127.0.0.1:${port}`
  const provider = stack.use(await startOpenIdProvider({ origins: [url], host: 'localhost' }))
  provider.accounts.set('anna', { preferred_username: 'anna', groups: ['lab'] })
  provider.accounts.set('carl', { preferred_username: 'carl', groups: ['kitchen'] })
  const home = stack.use(await createServerHome())
  stack.use(
    await home.start([], {
      ...provider.settings,
      FLASHER_SERVER_PORT: port,
      FLASHER_ADMIN_PASSWORD: PASSWORD,
    }),
  )
  const browser = await openBrowser()
  stack.defer(() => browser.close())
  const { context, complaints } = stack.use(await openContext(browser, { url }))
  await addAxe(context)
  const page = await context.newPage()

  await page.goto('/ui/machines?q=state%3Aarmed')
  await page.getByRole('link', { name: 'Log in with Example' }).click()
  await page.getByLabel('Account').fill('anna')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.waitForURL('**/ui/machines?q=state%3Aarmed')
  const cookies = await context.cookies(url)
  const [session] = cookies.filter(({ name }) => name === 'flasher-token')
  assert.equal([session?.sameSite, session?.httpOnly], ['Strict', true])
  assert.not(cookies.some(({ name }) => name === 'flasher-openid'))

  await page.goto('/ui/account')
  await page.getByText('You log in with a provider.').waitFor()
  await page.getByRole('button', { name: 'Log out' }).click()
  await page.waitForURL(`${provider.issuer}/session/end?**`)
  await page.getByRole('button', { name: /yes/i }).click()
  await page.waitForURL('**/ui/login')

  // The session at the provider is over, too: it asks who that is.
  await page.getByRole('link', { name: 'Log in with Example' }).click()
  await page.getByLabel('Account').fill('carl')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'No access' }).waitFor()
  await page.getByText('Ask it@example.org').waitFor()
  assert.equal(await listViolations(page), [])
  await page.goto('/ui/machines')
  await page.waitForURL('**/ui/login?**')
  assert.equal(await listViolations(page), [])

  await page.getByLabel('Administrator password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Log in', exact: true }).click()
  await page.goto('/ui/people')
  await page.getByRole('link', { name: 'Change anna' }).click()
  await page.getByText('Operator, from localhost').waitFor()
  assert.equal(await listViolations(page), [])
  await page.getByRole('button', { name: 'Block' }).click()
  await page.getByText('anna is blocked').waitFor()
  // The provider is elsewhere, and refusing somebody is a status that the console shows.
  const ours = complaints.filter(
    (each) => !/asks elsewhere: http:..localhost|status of 403/.test(each),
  )
  assert.equal(ours, [])
})

test('it is set up, tested and turned on in the page, without a script as well', async () => {
  for (const javaScriptEnabled of [true, false]) {
    await using stack = new AsyncDisposableStack()
    const port = String(await findPort())
    const url = `http://127.0.0.1:${port}`
    const provider = stack.use(await startOpenIdProvider({ origins: [url], host: 'localhost' }))
    provider.accounts.set('anna', { preferred_username: 'anna', groups: ['lab'] })
    const home = stack.use(await createServerHome())
    stack.use(await home.start([], { FLASHER_SERVER_PORT: port, FLASHER_ADMIN_PASSWORD: PASSWORD }))
    const browser = await openBrowser()
    stack.defer(() => browser.close())
    const { context, complaints } = stack.use(
      await openContext(browser, { url }, { javaScriptEnabled }),
    )
    if (javaScriptEnabled) await addAxe(context)
    const page = await context.newPage()
    const began = performance.now()
    await logIn(page)
    await page.goto('/ui/people')
    await page.getByRole('link', { name: 'Login with a provider' }).click()
    await page.getByRole('link', { name: 'Keycloak' }).click()
    await page.getByText(`${url}/ui/login/openid/callback`).waitFor()
    assert.is(
      await page.getByLabel('Claims with the groups', { exact: true }).inputValue(),
      'groups',
    )
    const fill = (label: string, text: string) => page.getByLabel(label, { exact: true }).fill(text)
    await fill('Issuer', provider.issuer)
    await fill('Client ID', CLIENT.id)
    await fill('Client secret', CLIENT.secret)
    await fill('Who may operate', 'lab')
    if (javaScriptEnabled) assert.equal(await listViolations(page), [])
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved in the configuration file and in effect.').waitFor()

    await page.getByRole('link', { name: 'Test the login' }).click()
    await page.getByLabel('Account').fill('anna')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('anna can log in as Operator.').waitFor()
    await page.getByText('Operator, because of lab').waitFor()
    if (javaScriptEnabled) assert.equal(await listViolations(page), [])
    await page.getByRole('link', { name: 'Back', exact: true }).click()
    await page.getByRole('button', { name: 'Turn on' }).click()
    await page.getByRole('button', { name: 'Turn off' }).waitFor()
    assert.ok(performance.now() - began < 180_000)
    if (javaScriptEnabled) assert.equal(await listViolations(page), [])
    await page.setViewportSize({ width: 390, height: 800 })
    await checkWidth(page, 'provider at 390')
    await context.clearCookies()
    await page.goto('/ui/login')
    await page.getByRole('link', { name: 'Log in with Keycloak' }).waitFor()
    assert.equal(
      complaints.filter((each) => !/asks elsewhere: http:..localhost/.test(each)),
      [],
    )
  }
})

test.run()
