/** First-boot templates as people use them: made, refused, assigned, previewed, removed; secrets are dots. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Page } from 'playwright-core'
import { addAxe, listViolations } from '#test/support/browser/axe.ts'
import { logIn, openContext, startSite } from '#test/support/browser/browser.ts'
import { createSharedBrowser } from '#test/support/browser/shared.ts'
import { macOf } from '#test/support/server/web-machines.ts'

const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB ada@example'
const PATH = '/ui/first-boot'
const MACHINE = `/ui/machines/${macOf(1)}`

const test = suite('the browser: first-boot templates')
const shared = createSharedBrowser(test)

/** Clicks beside typing: the tab, the button, one fold, and the button of the form. */
async function create(page: Page) {
  await page.goto('/ui/channels')
  await page.getByRole('link', { name: 'Templates' }).click()
  await page.getByText('No templates').waitFor()
  assert.is(await page.locator('#template-form').count(), 0)
  await page.getByRole('link', { name: 'New template' }).click()
  await page.getByLabel('Name', { exact: true }).fill('web')
  await page.getByLabel('Host name').fill('{{nam}}')
  await page.getByLabel('User name').first().fill('ada')
  await page.getByLabel('SSH keys').first().fill(`${KEY}\nAAAA`)
  await page.getByText('Packages, files and commands', { exact: true }).click()
  await page.getByLabel('Commands').fill('join {{secret.token}}')
  await page.getByLabel('Secrets', { exact: true }).fill('token=geheim-77')
  await page.getByRole('button', { name: 'Create template' }).click()
}

/** What screen readers say with a field that was refused. */
async function expectError(page: Page, label: string, text: string) {
  const field = page.getByLabel(label, { exact: true }).first()
  assert.is(await field.getAttribute('aria-invalid'), 'true')
  const ids = (await field.getAttribute('aria-describedby'))?.split(' ') ?? []
  const error = ids.find((id) => id.endsWith('-error')) ?? 'none'
  assert.match(await page.locator(`[id="${error}"]`).innerText(), text)
}

/** Without scripts: the preview opens in a page of its own, and what was typed stays in the form. */
async function unscripted(site: Awaited<ReturnType<typeof startSite>>, before: Page) {
  const context = await shared.browser.newContext({
    javaScriptEnabled: false,
    storageState: await before.context().storageState(),
    baseURL: site.url,
  })
  const page = await context.newPage()
  await page.goto(`${PATH}/web`)
  await page.getByLabel('Packages').fill('vim not/a/package')
  const [opened] = await Promise.all([
    context.waitForEvent('page'),
    page.getByRole('button', { name: 'Preview' }).click(),
  ])
  await opened.getByText('Package 2 is not the name of a package.').waitFor()
  await page.getByRole('button', { name: 'Save' }).click()
  await expectError(page, 'Packages', 'Package 2 is not')
  assert.is(await page.getByLabel('Packages').inputValue(), 'vim not/a/package')
  await page.getByText('Add a user').first().click()
  await page.getByText('User 2').first().waitFor()
  await context.close()
}

test('a template is refused, created, assigned, previewed and deleted', async () => {
  await using site = await startSite()
  await site.boxes.boot(1)
  await using opened = await openContext(shared.browser, site)
  await addAxe(opened.context)
  const page = await opened.context.newPage()
  await logIn(page)
  await create(page)
  await page.getByText('Correct the 2 fields that are marked').waitFor()
  await expectError(page, 'Host name', '{{nam}} is not a placeholder')
  await expectError(page, 'SSH keys', 'Key 2 is no public key')
  // A secret that was typed does not come back.
  assert.is(await page.getByLabel('Secrets', { exact: true }).inputValue(), 'token=')
  assert.is(await page.getByLabel('SSH keys').first().inputValue(), `${KEY}\nAAAA`)
  assert.equal(await listViolations(page), [])
  await page.getByLabel('Host name').fill('{{name}}')
  await page.getByLabel('SSH keys').first().fill(KEY)
  await page.getByLabel('Administrator').first().check()
  await page.getByLabel('Password hash').first().fill('$6$salt$0123456789abcdef')
  await page.getByText('Add a file').first().click()
  await page.getByLabel('Path').first().fill('/etc/motd')
  await page.getByLabel('Text', { exact: true }).first().fill('made by {{name}}')
  await page.getByText('Network', { exact: true }).click()
  await page.getByLabel('Addresses').selectOption('static')
  await page.getByLabel('Address', { exact: true }).fill('192.0.2.7/24')
  await page.getByLabel('Secrets', { exact: true }).fill('token=geheim-77')
  // The preview follows what is typed, before anything is saved; secrets are dots there.
  const preview = page.locator('#preview')
  await preview.getByText('addresses: ["192.0.2.7/24"]').waitFor()
  await preview.getByText('join ••••••••').first().waitFor()
  assert.not.match(await preview.innerText(), /geheim|0123456789abcdef/)
  await page.getByRole('button', { name: 'Create template' }).click()
  await page.waitForURL(`**${PATH}/web?saved=1`)
  assert.is(
    await page.getByLabel('Secrets', { exact: true }).inputValue(),
    'token=••••••••\npassword-ada=••••••••',
  )
  assert.is(await page.getByLabel('Password hash').first().inputValue(), '{{secret.password-ada}}')
  assert.equal(await listViolations(page), [])

  // As a text the template can say what the form does not show, which then stays as it is.
  await page.getByRole('link', { name: 'As text' }).click()
  const text = page.getByLabel('Template', { exact: true })
  const document = JSON.parse(await text.inputValue())
  await text.fill(JSON.stringify({ ...document, commands: ['if true\nthen :; fi'] }))
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Saved. Machines get it').waitFor()
  await page.getByRole('link', { name: 'As a form' }).click()
  await page.getByText('kept as it is: commands').waitFor()
  await page.getByLabel('Packages').fill('curl')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Saved. Machines get it').waitFor()
  await preview.getByText('if true\\nthen :; fi').first().waitFor()
  await unscripted(site, page)

  await page.goto(MACHINE)
  const card = page.locator('#first-boot')
  await page.getByRole('heading', { name: 'First boot', exact: true }).click()
  await card.getByLabel('Template').selectOption('web')
  await card.getByRole('button', { name: 'Assign' }).click()
  await card.getByText('the machine has no name').waitFor()
  await page.getByLabel('Name', { exact: true }).fill('web-1')
  await page.getByRole('button', { name: 'Save' }).first().click()
  await card.getByText('Preview for this machine').click()
  await card.getByText('web-1').first().waitFor()
  await card.getByText('This machine is not flashed until').waitFor()
  assert.equal(await listViolations(page), [])

  await page.goto(`${PATH}/web`)
  await page.getByText('In use by 1 machine').waitFor()
  await page.goto(MACHINE)
  await card.getByLabel('Template').selectOption('')
  await card.getByRole('button', { name: 'Assign' }).click()
  await page.goto(`${PATH}/web`)
  await page.getByRole('button', { name: 'Delete template' }).click()
  await page.getByText('Delete the template web?').waitFor()
  await page.locator('#question').getByRole('button', { name: 'Delete template' }).click()
  await page.waitForURL(`**${PATH}`)
  await page.getByText('No templates').waitFor()
})

test.run()
