import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { chooseAction, flashAgain } from '#test/support/browser/browser.ts'
import { createSiteLab } from '#test/support/browser/site-lab.ts'
import { macOf, serialOf } from '#test/support/server/web-machines.ts'

const test = suite('the browser without JavaScript')
const lab = createSiteLab(test)

const withPage = (work: Parameters<typeof lab.withPage>[0]) =>
  lab.withPage(work, { javaScriptEnabled: false })

test('the whole way: discover, assign, confirm, flash again, delete', () =>
  withPage(async (page, site) => {
    await site.boxes.boot(1)
    await site.boxes.tellDisks(1)
    await page.goto('/ui/machines')
    await page.getByRole('link', { name: macOf(1) }).click()
    await page.getByRole('radio', { name: /^fedora-43-server/ }).check()
    await page.getByRole('radio', { name: /^Samsung SSD 980/ }).check()
    await page.getByText('select Flash once as well').waitFor()
    await page.getByLabel('Name').fill('Bench 1')
    await page.getByLabel('Labels').fill('bench-1')
    await page.getByRole('button', { name: 'Save' }).last().click()
    await page.getByText('Saved, not armed').waitFor()
    await page.getByRole('radio', { name: /^Flash once/ }).check()
    await page.getByRole('button', { name: 'Review and arm…' }).click()
    await page.getByText('Everything on this disk will be lost').waitFor()
    await page.getByRole('textbox', { name: /Type the last 4/ }).fill('nope')
    await page.getByRole('button', { name: /^Arm/ }).click()
    await page.getByText('These are not the last characters').waitFor()
    await page.getByRole('textbox', { name: /Type the last 4/ }).fill(serialOf(1).slice(-4))
    await page.getByRole('button', { name: /^Arm/ }).click()
    await page.getByText('Armed. Boot the machine').waitFor()
    assert.is((await site.boxes.plan(1)).mode, 'flash')

    await site.boxes.done(1)
    assert.is((await site.boxes.plan(1)).mode, 'exit')
    await page.reload()
    await flashAgain(page)
    await page.getByRole('textbox', { name: /Type the last 4/ }).fill(serialOf(1).slice(-4))
    await page.getByRole('button', { name: /^Arm/ }).click()
    await page.getByText('Armed. Boot the machine').waitFor()
    assert.is((await site.boxes.plan(1)).mode, 'flash')

    await page.getByText('Delete this machine').click()
    await page.getByRole('button', { name: 'Delete machine…' }).click()
    await page.getByRole('heading', { name: 'Delete Bench 1?' }).waitFor()
    await page.getByRole('link', { name: 'Cancel' }).click()
    await page.getByText('Delete this machine').click()
    await page.getByRole('button', { name: 'Delete machine…' }).click()
    await page.getByRole('button', { name: 'Delete machine', exact: true }).click()
    await page.getByText(`${macOf(1)} was deleted`).waitFor()
  }))

test('many at once, found by a search that stays', () =>
  withPage(async (page, site) => {
    for (const box of [2, 3]) await site.boxes.boot(box)
    await page.goto('/ui/machines')
    await page.getByRole('searchbox', { name: 'Search machines' }).fill('is:discovered')
    await page.getByRole('button', { name: 'Search' }).click()
    await page.getByLabel(`Select ${macOf(2)}`).check()
    await chooseAction(page, 'Label…')
    await page.getByLabel('Add labels').fill('fresh')
    await page.getByRole('button', { name: 'Label (1)' }).click()
    await page.getByText('Labelled 1 machine').waitFor()
    await page.getByRole('link', { name: 'Back to machines' }).click()
    assert.match(page.url(), /q=is%3Adiscovered/)
    await page.getByText('fresh', { exact: true }).waitFor()
  }))

test('settings: a wrong value gets an error at its field; a right one is saved', () =>
  withPage(async (page, site) => {
    await page.goto('/ui/settings#pxe.inventory_refresh')
    const row = page.locator('[id="pxe.inventory_refresh"]')
    const save = page.getByRole('button', { name: 'Save changes' })
    await row.getByRole('textbox').fill('no span')
    await save.click()
    await row.getByText('Must be seconds, a span like').waitFor()
    assert.is(await row.getByRole('textbox').inputValue(), 'no span')
    await row.getByRole('textbox').fill('7 days')
    await page.locator('[id="pxe.loop_limit"]').getByRole('spinbutton').fill('7')
    await save.click()
    await page.getByText('Saved in the configuration file and in effect.').waitFor()
    const file = await site.home.text('state/flasher.toml')
    assert.match(file, /loop_limit = 7/)
    assert.match(file, /inventory_refresh = "1w"/)
  }))

test('a backup is made, and put back after its time was typed', () =>
  withPage(async (page) => {
    await page.goto('/ui/backups')
    await page.getByRole('button', { name: 'Back up now' }).first().click()
    const restore = page.getByRole('link', { name: 'Restore…' })
    for (let tries = 0; tries < 100 && (await restore.count()) === 0; tries += 1)
      await page.reload()
    await restore.first().click()
    const wanted = await page.locator('label code').innerText()
    await page.getByRole('textbox').fill(wanted)
    await page.getByRole('button', { name: /^Restore/ }).click()
    await page.getByText('The previous state was kept').waitFor()
    const remove = page.getByRole('button', { name: 'Remove…' })
    await remove.first().click()
    await page.getByRole('heading', { name: /^Remove the backup of .*\?$/ }).waitFor()
    await page.getByRole('link', { name: 'Cancel' }).click()
    assert.is(await remove.count(), 1)
    await remove.first().click()
    await page.getByRole('button', { name: 'Remove backup' }).click()
    await page.getByText('was removed.').waitFor()
    assert.is(await remove.count(), 0)
  }))

test('events are acknowledged, tokens made and revoked, and the colours stay', () =>
  withPage(async (page, site) => {
    await site.boxes.boot(4)
    await site.boxes.fail(4, 'no disk at all')
    await page.goto('/ui/events?unacknowledged=1')
    await page.getByRole('button', { name: 'Acknowledge selected' }).click()
    await page.getByText('No event was selected').waitFor()
    await page.getByRole('button', { name: /^Acknowledge (the|all)/ }).click()
    await page.getByText('Nothing needs attention').waitFor()

    await page.goto('/ui/account')
    await page.getByLabel('Name').fill('ci')
    await page.getByRole('button', { name: 'Create token' }).click()
    await page.getByText('it will not be shown again').waitFor()
    await page.getByRole('button', { name: 'Revoke…' }).click()
    await page.getByRole('heading', { name: 'Revoke the token ci?' }).waitFor()
    await page.getByRole('link', { name: 'Cancel' }).click()
    await page.getByRole('button', { name: 'Revoke…' }).click()
    await page.getByRole('button', { name: 'Revoke token' }).click()
    await page.getByText('No tokens').waitFor()

    await page.getByRole('button', { name: 'Dark' }).click()
    assert.is(await page.locator('html').getAttribute('data-theme'), 'dark')
    await page.getByRole('button', { name: 'Log out' }).click()
    await page.waitForURL('**/ui/login')
  }))

test('the search finds a machine, a setting and an action', () =>
  withPage(async (page, site) => {
    await site.boxes.boot(5)
    await page.goto('/ui/dashboard')
    await page.locator('#find').fill(macOf(5).replaceAll(':', '').toUpperCase())
    await page.locator('#find').press('Enter')
    await page.waitForURL('**/ui/find?q=*')
    await page
      .getByRole('main')
      .getByRole('link', { name: macOf(5) })
      .first()
      .click()
    await page.waitForURL(`**/ui/machines/${macOf(5)}`)
    await page.goto('/ui/find?q=loop')
    await page.getByRole('link', { name: 'Boots until a loop is suspected' }).click()
    await page.waitForURL('**/ui/settings**')
    await page.goto('/ui/find?q=nothing+is+called+so')
    await page.getByText('No results').first().waitFor()
  }))

test('DHCP: another loader changes the files, and a recipe opens', () =>
  withPage(async (page) => {
    await page.goto('/ui/dhcp')
    const files = page.locator('#dhcp-pxe')
    await files.getByText('grubx64.efi').or(files.getByText('shimx64.efi')).first().waitFor()
    await page.getByRole('link', { name: 'iPXE' }).click()
    await page.waitForURL('**/ui/dhcp?loader=ipxe**')
    await files.getByText('ipxe.efi').first().waitFor()
    const recipe = page.locator('#recipes details').first()
    await recipe.locator('summary').click()
    await recipe.locator('code').first().waitFor()
  }))

test('two runs are selected and compared', () =>
  withPage(async (page, site) => {
    for (const box of [6, 7]) {
      await site.boxes.boot(box)
      const run = { run: `c0ffee00-000${box}`, phase: 'failed', reason: `no disk ${box}` }
      await site.boxes.report(box, run)
    }
    await page.goto('/ui/runs')
    await page.getByText('no disk 6').waitFor()
    for (const box of [6, 7]) {
      await page.getByRole('checkbox', { name: `Select the run of ${macOf(box)}` }).check()
    }
    await page.getByRole('button', { name: 'Compare two' }).click()
    const facts = page.locator('.compared')
    await facts.getByRole('row', { name: /^Reason no disk \d no disk \d$/ }).waitFor()
    await page.locator('#same > summary').click()
    await facts.getByRole('row', { name: /^State failed failed$/ }).waitFor()
  }))

test.run()
