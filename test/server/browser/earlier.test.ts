/** The pages of the earlier line in a browser: one journey, and what every page must keep to. */
import { mkdir, writeFile } from 'node:fs/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Page } from 'playwright-core'
import { addAxe, checkLooks } from '#test/support/browser/axe.ts'
import { openContext, PASSWORD } from '#test/support/browser/browser.ts'
import { createSharedBrowser } from '#test/support/browser/shared.ts'
import { createServerHome } from '#test/support/server/flasher-web.ts'
import { createSystemAccount, hashOf } from '#test/support/system/system-account.ts'

const test = suite('the earlier line in a browser')
const MAC = '52:54:00:12:34:56'
const shared = createSharedBrowser(test)

async function startEarlier() {
  const stack = new AsyncDisposableStack()
  const { prefix } = stack.use(await createSystemAccount({ shadow: hashOf(PASSWORD) }))
  const home = stack.use(await createServerHome({ prefix }))
  await mkdir(home.at('images'))
  const server = stack.use(
    await home.start([], {
      FLASHER_LINE: 'earlier',
      FLASHER_IMAGE_ROOT: home.at('images'),
    }),
  )
  return { home, url: server.url, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

async function logIn(page: Page): Promise<void> {
  await page.goto('/ui/login')
  await page.getByLabel('Password of root').fill(PASSWORD)
  await page.getByRole('button', { name: 'Log in' }).click()
  await page.waitForURL('**/ui/dashboard')
}

test('log in, upload an image, set the policy flash, see the script', async () => {
  await using site = await startEarlier()
  await using opened = await openContext(shared.browser, site)
  const page = await opened.context.newPage()
  await logIn(page)

  await page.getByRole('link', { name: 'Images', exact: true }).first().click()
  await page.getByText('No images').waitFor()
  await page.getByLabel('Image file').setInputFiles({
    name: 'debian 13.img.zst',
    mimeType: 'application/octet-stream',
    buffer: Buffer.alloc(200_000, 7),
  })
  await page.getByRole('button', { name: 'Upload' }).click()
  await page.getByRole('link', { name: 'debian 13.img.zst' }).waitFor()

  await page.goto('/ui/machines')
  // It appears without a reload.
  await page.getByText('No machines yet').waitFor()
  await fetch(`${site.url}/pxe/${MAC}`)
  await page.getByRole('link', { name: MAC }).click()

  await page.getByRole('radio', { name: /^Flash at every network boot/ }).check()
  await page.getByLabel('Image').selectOption('debian 13.img.zst')
  await page.getByLabel('After the flash').selectOption('cloud-init')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('only suitable disk is erased').waitFor()
  await page.getByRole('button', { name: 'Erase and flash at every network boot' }).click()
  await page.getByText('cloud-init needs user-data').waitFor()
  await page.getByText('user-data', { exact: true }).click()
  await page.getByLabel('Content').first().fill('#cloud-config\n')
  await page.getByRole('button', { name: 'Save user-data' }).click()
  await page.getByText('Saved.').waitFor()
  assert.is(await page.getByText('cloud-init needs').count(), 0)
  const script = (await page.getByLabel('Boot script').textContent()) ?? ''
  assert.match(script, `flasher.image_url=${site.url}/images/debian%2013.img.zst`)
  assert.match(script, 'flasher.provisioning=cloud-init')
  assert.match(script, 'flasher.token=hidden')

  await page.goto('/ui/images')
  await page.getByRole('link', { name: '1 machine' }).waitFor()
  await page.getByRole('button', { name: 'Remove debian 13.img.zst' }).click()
  const question = page.getByRole('dialog')
  await question.getByText('1 machine uses this image').waitFor()
  await question.getByRole('link', { name: MAC }).waitFor()
  await question.getByRole('button', { name: 'Remove anyway' }).click()
  await page.getByText('debian 13.img.zst was removed.').waitFor()

  await page.goto('/ui/dashboard')
  await page.getByText('Setup: 1 of 3 done').waitFor()
  assert.equal(opened.complaints, [])
})

/** A machine whose person at the screen could not flash it. */
async function addFailed(url: string): Promise<void> {
  const mac = '52:54:00:00:00:0f'
  await fetch(`${url}/pxe/${mac}`)
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ status: 'failed', reason: 'The disk is smaller than the image.' })
  await fetch(`${url}/pxe/${mac}/status`, { method: 'POST', headers, body })
}

const PAGES = ['dashboard', 'machines', `machines/${MAC}`, 'images', 'boot', 'settings', 'account']

test('axe finds nothing, and nothing is wider than the screen', async () => {
  await using site = await startEarlier()
  const long = `${'a-very-long-name-'.repeat(9)}ÄÖ日本.img.zst`
  await writeFile(site.home.at(`images/${long}`), 'x')
  await fetch(`${site.url}/pxe/${MAC}`)
  await addFailed(site.url)
  await using opened = await openContext(shared.browser, site)
  await addAxe(opened.context)
  const page = await opened.context.newPage()
  await logIn(page)
  await page.goto(`/ui/machines/${MAC}`)
  await page.getByLabel('Image').selectOption(long)
  await page.getByLabel('Host name').fill('host-'.repeat(40))
  await page.getByRole('radio', { name: /^Flash at every network boot/ }).check()
  await page.getByLabel('After the flash').selectOption('cijoe-online')
  await page
    .getByLabel('Workflow on this server')
    .fill(`/srv/${'a-long-workflow-<b>-'.repeat(20)}.yaml`)
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  // The first time it is asked, then it is armed.
  const erase = page.getByRole('button', { name: 'Erase and flash at every network boot' })
  await page.getByText('Saved.').or(erase).waitFor()
  if (await erase.isVisible()) await erase.click()
  // Its workflow is not there, so that the run fails at once; the page learns of it.
  await page.getByText('Saved.').waitFor()
  await fetch(`${site.url}/pxe/${MAC}/done`, { method: 'POST' })
  const run = await page.locator('#workflow a').getAttribute('href')
  for (const path of [...PAGES, run?.slice('/ui/'.length) ?? '']) {
    await page.goto(`/ui/${path}`)
    await checkLooks(page, path)
  }
})

test.run()
