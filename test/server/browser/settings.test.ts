/** Settings, events and the account as people use them: a search while typing, dates, another password. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Page } from 'playwright-core'
import { logIn, openContext, startSite, type WebSite } from '#test/support/browser/browser.ts'
import { createSharedBrowser } from '#test/support/browser/shared.ts'
import { macOf } from '#test/support/server/web-machines.ts'

const NEXT = 'another password for tests'
const test = suite('the browser: settings, events, account')
const shared = createSharedBrowser(test)

async function withPage(
  site: WebSite,
  work: (page: Page) => Promise<void>,
  options: Parameters<typeof openContext>[2] = {},
) {
  await using opened = await openContext(shared.browser, site, options)
  await work(await opened.context.newPage())
  assert.equal(opened.complaints, [])
}

/** Opens parts of the settings page by their titles, as people do. */
async function openParts(page: Page, ...titles: readonly string[]): Promise<void> {
  const all = page.getByText('All settings', { exact: true })
  const isOpen = await page.locator('#more').isVisible()
  if (!isOpen) await all.click()
  for (const title of titles) {
    const heading = page.getByRole('heading', { name: title, exact: true })
    await page.locator('summary').filter({ has: heading }).click()
  }
}

test('settings are filtered while somebody types, and headings without any go', async () => {
  await using site = await startSite()
  await withPage(site, async (page) => {
    await logIn(page)
    await page.goto('/ui/settings')
    const search = page.getByRole('searchbox', { name: 'Search settings' })
    const shown = page.locator('.setting:visible')
    assert.is(await shown.count(), 15)
    await search.pressSequentially('loop suspected')
    await page.getByRole('heading', { name: 'Flashing' }).first().waitFor({ state: 'hidden' })
    assert.is(await shown.count(), 1)
    assert.match(await shown.innerText(), 'Boots until a loop is suspected')
    assert.is(await page.getByRole('heading', { name: 'Storage' }).isVisible(), false)
    await search.fill('zebra')
    await page.getByText('No matching settings').waitFor()
    await search.fill('')
    await page.getByRole('heading', { name: 'Flashing' }).first().waitFor()
    assert.is(await page.getByText('No matching settings').isVisible(), false)
    // What the search had opened is folded again.
    assert.is(await shown.count(), 15)
  })
})

const ANCHORS = [
  ['pxe.loop_limit', 'Boots until a loop is suspected'],
  ['ramboot', 'Address of the cache service'],
  ['backup-schedule', 'Backups to keep'],
  ['netboot-release', 'Release repository'],
  ['dhcp-pxe', 'TFTP server (option 66)'],
] as const

async function followAnchors(page: Page): Promise<void> {
  await logIn(page)
  await page.goto('/ui/settings')
  const height = (await page.locator('main').boundingBox())?.height ?? Infinity
  assert.ok(height < 2_000, String(height))
  for (const [anchor, shown] of ANCHORS) {
    await page.goto(`/ui/settings?from=${anchor}#${anchor}`)
    const words = page.locator('#settings').getByText(shown, { exact: true })
    await words.waitFor()
    const box = await words.boundingBox()
    assert.ok(box !== null && box.y >= 0 && box.y < 700, `${anchor} ${JSON.stringify(box)}`)
  }
  // A link from one row to another one of the same page does so, too.
  await page.goto('/ui/settings?from=dhcp-pxe#display.timezone')
  await page.getByLabel('Time zone', { exact: true }).waitFor()
}

for (const javaScriptEnabled of [true, false]) {
  const how = javaScriptEnabled ? 'with a script' : 'without one'
  test(`the page is short, and a link to a row or a part opens what it is in, ${how}`, async () => {
    await using site = await startSite()
    const viewport = { width: 1280, height: 800 }
    await withPage(site, followAnchors, { javaScriptEnabled, viewport })
  })
}

test('settings of files and of the database are saved by one button, all of them or none', async () => {
  await using site = await startSite()
  const work = async (page: Page) => {
    await logIn(page)
    await page.goto('/ui/settings')
    await openParts(page, 'Flashing')
    const row = (name: string) => page.locator(`[id="${name}"]`)
    const save = page.getByRole('button', { name: 'Save changes' })
    assert.is(await page.getByRole('button', { name: /^Save/ }).count(), 1)
    await row('backup.cadence').getByRole('combobox').selectOption('Every day')
    await row('boot.release_repo').getByRole('textbox').fill('no repository')
    await row('pxe.flash_silence').getByRole('textbox').fill('12 min')
    await save.click()
    await page.getByText('Nothing was saved.').waitFor()
    await row('boot.release_repo').locator('.error').waitFor()
    assert.is(await row('backup.cadence').getByRole('combobox').inputValue(), 'daily')
    await row('boot.release_repo').getByRole('textbox').fill('owner/name')
    await save.click()
    for (const name of ['backup.cadence', 'boot.release_repo', 'pxe.flash_silence'])
      await row(name).getByText('Saved', { exact: true }).waitFor()
    assert.is(await row('backup.enabled').getByRole('switch').isChecked(), true)
    assert.match(await site.home.text('state/flasher.toml'), 'flash_silence = "12m"')
    assert.not.match(await site.home.text('state/flasher.toml'), 'owner/name')
    await page.getByRole('button', { name: 'Use default: Release repository' }).click()
    await row('boot.release_repo').getByText('Saved', { exact: true }).waitFor()
    assert.is(await row('boot.release_repo').getByRole('textbox').inputValue(), '')
  }
  await withPage(site, work, { javaScriptEnabled: false })
})

test('a switch, a choice, a number, a span, a size and a list are changed at once, and come back', async () => {
  await using site = await startSite({ FLASHER_PXE_RUN_PATIENCE: '90s' })
  await withPage(site, async (page) => {
    await logIn(page)
    await page.goto('/ui/settings')
    const field = (name: string) => page.getByLabel(name, { exact: true })
    const metrics = page.getByRole('switch', { name: 'Metrics without login' })
    await openParts(
      page,
      'Times, logs and monitoring',
      'PXE and discovery',
      'Flashing',
      'Limits',
      'Proxies and host names',
      'Images and releases',
    )
    await metrics.focus()
    await page.keyboard.press('Space')
    await field('Log level').selectOption('Warnings')
    await field('Boots until a loop is suspected').fill('9')
    await field('Skip a silent machine after').fill('1h 30min')
    await field('Largest upload').fill('10 gib')
    await field('Trusted proxies').fill('10.0.0.0/8\n::1')
    await field('Token for the cache service').fill('hunter2')
    await page.getByRole('button', { name: 'Save changes' }).click()
    await page.getByText('Saved in the configuration file').waitFor()
    assert.is(await metrics.isChecked(), true)
    assert.is(await field('Log level').inputValue(), 'warn')
    assert.is(await field('Boots until a loop is suspected').inputValue(), '9')
    assert.is(await field('Skip a silent machine after').inputValue(), '90 min')
    assert.is(await field('Largest upload').inputValue(), '10 GiB')
    assert.is(await field('Trusted proxies').inputValue(), '10.0.0.0/8\n::1')
    assert.is(await field('Token for the cache service').inputValue(), '')
    assert.not.match(await page.content(), 'hunter2')
    const file = await site.home.text('state/flasher.toml')
    assert.match(file, 'flash_silence = "90m"')
    assert.match(file, 'max_upload_bytes = "10 GiB"')
    // Set by the environment: shown, with the reason, and without a field.
    const locked = page.locator('[id="pxe.run_patience"]')
    await locked.getByText('90 seconds').waitFor()
    await locked.getByText('set by the environment variable FLASHER_PXE_RUN_PATIENCE').waitFor()
    assert.is(await locked.locator('input').count(), 0)
    await page.getByRole('button', { name: 'Remove: Token for the cache service' }).click()
    await page.getByText('Saved in the configuration file').waitFor()
    assert.not.match(await site.home.text('state/flasher.toml'), 'token')
    await openParts(page, 'Times, logs and monitoring', 'Proxies and host names')
    await field('Trusted proxies').fill('::1')
    await page.getByRole('button', { name: 'Use default: Log level' }).click()
    await page.getByText('Saved in the configuration file').waitFor()
    assert.is(await field('Log level').inputValue(), 'info')
    assert.is(await field('Trusted proxies').inputValue(), '::1')
  })
})

for (const javaScriptEnabled of [true, false]) {
  const how = javaScriptEnabled ? 'with a script' : 'without one'
  test(`saved and refused are said at the row, and the search stays, ${how}`, async () => {
    await using site = await startSite()
    const options = { javaScriptEnabled, viewport: { width: 1280, height: 500 } }
    const work = async (page: Page) => {
      await logIn(page)
      await page.goto('/ui/settings')
      const search = page.getByRole('searchbox', { name: 'Search settings' })
      const find = async (text: string) => {
        await search.fill(text)
        if (!javaScriptEnabled) await search.press('Enter')
        await page.waitForLoadState()
      }
      const save = page.getByRole('button', { name: 'Save changes' })
      const row = page.locator('[id="pxe.flash_silence"]')
      const field = row.getByRole('textbox')
      const saved = page.getByText('Saved', { exact: true })
      await find('skip silent')
      await field.fill('ten minutes')
      await save.click()
      await row.getByText(/^Must be seconds, a span like 90s.*not "ten minutes"\.$/).waitFor()
      assert.is(await field.inputValue(), 'ten minutes')
      assert.is(await search.inputValue(), 'skip silent')
      await field.fill('10 min')
      await save.click()
      await row.getByText('Saved', { exact: true }).waitFor()
      assert.is(await search.inputValue(), 'skip silent')
      assert.is(await page.locator('.setting:visible').count(), 1)
      // Far down in the whole list, the row is what the browser shows.
      await find('')
      await page.getByRole('heading', { name: 'Notifications' }).first().waitFor()
      if (!(await field.isVisible())) await openParts(page, 'Flashing')
      await field.fill('12 min')
      await field.press('Enter')
      await row.getByText('Saved', { exact: true }).waitFor()
      await page.waitForLoadState()
      const box = await saved.boundingBox()
      assert.ok(box !== null && box.y > 0 && box.y < 500, JSON.stringify(box))
      // What the database keeps is saved the same way.
      await find('backup')
      await page.getByLabel('Backups to keep', { exact: true }).fill('4')
      await save.click()
      await page.locator('[id="backup.retention"]').getByText('Saved', { exact: true }).waitFor()
      assert.is(await search.inputValue(), 'backup')
    }
    await withPage(site, work, options)
  })
}

test('a page with unsaved changes is not left without a question', async () => {
  await using site = await startSite()
  await withPage(site, async (page) => {
    await logIn(page)
    await page.goto('/ui/settings')
    await openParts(page, 'Proxies and host names')
    await page.getByLabel('Trusted proxies', { exact: true }).fill('::1')
    const asked = page.waitForEvent('dialog')
    const leaving = page.getByRole('link', { name: 'Dashboard' }).click()
    const dialog = await asked
    assert.is(dialog.type(), 'beforeunload')
    await dialog.accept()
    await leaving
    await page.waitForURL('**/ui/dashboard')
  })
})

test('while machines boot a live system, the ways to another one open by their link', async () => {
  await using site = await startSite()
  await withPage(
    site,
    async (page) => {
      await logIn(page)
      await page.goto('/ui/netboot')
      const field = page.locator('#install').getByLabel('Release', { exact: true })
      assert.is(await field.isVisible(), false)
      await page.getByRole('link', { name: 'Install', exact: true }).click()
      await field.waitFor()
    },
    { javaScriptEnabled: false },
  )
})

test('events: from a filter to the file, by fields and links alone', async () => {
  await using site = await startSite()
  await site.boxes.boot(1)
  await withPage(
    site,
    async (page) => {
      await logIn(page)
      await page.request.put(`/machines/${macOf(1)}`, { data: { labels: ['bench-1'] } })
      await page.goto('/ui/events')
      const event = page.locator('li.event').filter({ hasText: 'bench-1' }).first()
      await event.getByText('Details').click()
      await event.getByRole('link', { name: 'machine.upserted' }).click()
      await page.getByText('Labels from none → to bench-1').waitFor()
      await page.getByLabel('From').fill('2020-01-01')
      await page.getByRole('button', { name: 'Search' }).click()
      await page.getByText('Kind: machine.upserted').waitFor()
      assert.match(page.url(), /from=2020-01-01/)
      await page.getByText('Download', { exact: true }).click()
      const href = await page.getByRole('link', { name: 'As CSV' }).getAttribute('href')
      const csv = await (await page.request.get(href ?? '')).text()
      assert.is(csv.trim().split('\r\n').length, 2)
      assert.match(csv, 'labels: none → bench-1')
      await page.getByRole('link', { name: /Kind: machine\.upserted/ }).click()
      await page.getByRole('link', { name: 'Show logins and backup steps' }).click()
      await page.getByText('An operator logged in').first().waitFor()
    },
    { javaScriptEnabled: false, viewport: { width: 390, height: 844 } },
  )
})

test('the account changes the password, and this browser stays logged in', async () => {
  await using site = await startSite({ FLASHER_ADMIN_PASSWORD: '' })
  const generated = await site.home.run(['password', '--generate'])
  const password = /^Password: (\S+)$/m.exec(generated.stdout)?.[1] ?? ''
  await withPage(site, async (page) => {
    const logInWith = async (given: string) => {
      await page.goto('/ui/login')
      await page.getByLabel('Administrator password').fill(given)
      await page.getByRole('button', { name: 'Log in' }).click()
      await page.waitForURL('**/ui/dashboard')
    }
    await logInWith(password)
    await page.goto('/ui/account')
    const change = async (repeated: string) => {
      await page.getByLabel('Current password').fill(password)
      await page.getByLabel('New password', { exact: true }).fill(NEXT)
      await page.getByLabel('Repeat new password').fill(repeated)
      await page.getByRole('button', { name: 'Change password' }).click()
    }
    await change(`${NEXT}!`)
    await page.getByText('The two passwords are different.').first().waitFor()
    await change(NEXT)
    await page.getByText('Password changed.').waitFor()
    // A page without live changes: its stream would end with the session.
    await page.goto('/ui/settings')
    assert.is(new URL(page.url()).pathname, '/ui/settings')
    await page.context().clearCookies()
    await logInWith(NEXT)
  })
})

test.run()
