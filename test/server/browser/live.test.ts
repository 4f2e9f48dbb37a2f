import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { logIn, openContext } from '#test/support/browser/browser.ts'
import { createSharedSite } from '#test/support/browser/shared.ts'
import { disksOf, macOf, serialOf } from '#test/support/server/web-machines.ts'

const test = suite('the browser: live rows')
const shared = createSharedSite(test)

const rowOf = (box: number) => `#m-${macOf(box).replaceAll(':', '-')}`

test('a selection stays, rows do not jump, and new machines wait behind a chip', async () => {
  await using opened = await openContext(shared.browser, shared.site)
  const page = await opened.context.newPage()
  await logIn(page)
  for (const box of [5, 6]) await shared.site.boxes.boot(box)
  await page.goto('/ui/machines')
  await page.locator(rowOf(6)).getByRole('checkbox').check()
  await shared.site.boxes.boot(1)
  const chip = page.getByRole('button', { name: '1 more machine' })
  await chip.waitFor()
  assert.is(await page.locator(rowOf(1)).count(), 0)
  assert.is(await page.locator(rowOf(6)).getByRole('checkbox').isChecked(), true)
  // What is there already is kept up to date meanwhile.
  await shared.site.boxes.fail(5, 'no route to the image')
  await page.locator(rowOf(5)).getByText('failed', { exact: true }).waitFor()
  await chip.click()
  await page.locator(rowOf(1)).waitFor()
  assert.is(await page.locator(rowOf(6)).getByRole('checkbox').isChecked(), true)
  assert.is(await page.locator('#rows tr').first().getAttribute('id'), rowOf(1).slice(1))
  assert.equal(opened.complaints, [])
})

test('the page of a machine follows it, and leaves alone what is being typed', async () => {
  await using opened = await openContext(shared.browser, shared.site)
  const page = await opened.context.newPage()
  await logIn(page)
  await shared.site.boxes.boot(7)
  await page.goto(`/ui/machines/${macOf(7)}`)
  await page.getByRole('heading', { name: 'Details' }).click()
  await page.getByLabel('Labels').fill('half typ')
  await shared.site.boxes.tellDisks(7)
  await page.getByText('Supermicro').waitFor()
  assert.is(await page.getByLabel('Labels').inputValue(), 'half typ')
  assert.is(await page.getByText('#!ipxe').isVisible(), true)
})

test('disks appear in the open form, and what was typed and selected stays', async () => {
  await using opened = await openContext(shared.browser, shared.site)
  const page = await opened.context.newPage()
  await logIn(page)
  await shared.site.boxes.boot(9)
  await page.goto(`/ui/machines/${macOf(9)}`)
  await page.getByText('No disks reported yet').waitFor()
  await page.getByRole('radio', { name: /^fedora-43-server/ }).check()
  await page.getByLabel('Serial number, if you know it').fill(serialOf(9))
  await page.getByLabel('Name').fill('half a na')
  await page.getByLabel('Labels').fill('half typ')
  const [samsung, seagate, sandisk] = disksOf(9)
  await shared.site.boxes.tellDisks(9, [seagate, samsung])
  // The disk whose serial number was typed is the one that is selected.
  const wanted = page.getByRole('radio', { name: /^Samsung SSD 980/ })
  await wanted.waitFor()
  assert.is(await wanted.isChecked(), true)
  assert.is(await page.getByRole('radio', { name: /^fedora-43-server/ }).isChecked(), true)
  assert.is(await page.getByRole('radio', { name: /^Flash once/ }).isChecked(), true)
  assert.is(await page.getByLabel('Name').inputValue(), 'half a na')
  assert.is(await page.getByLabel('Labels').inputValue(), 'half typ')
  // A later list, in another order, moves no selection to another disk.
  await page.getByRole('radio', { name: /^ST4000NM0035/ }).check()
  await shared.site.boxes.tellDisks(9, [samsung, sandisk, seagate])
  await page.getByRole('radio', { name: /^SanDisk/ }).waitFor()
  assert.is(await page.getByRole('radio', { name: /^ST4000NM0035/ }).isChecked(), true)
  assert.is(await page.getByRole('radio', { name: /^fedora-43-server/ }).isChecked(), true)
  // A disk that went away stays selected, and says so.
  await shared.site.boxes.tellDisks(9, [samsung])
  await page.getByText('(gone)').waitFor()
  assert.is(await page.getByRole('radio', { name: /\(gone\)/ }).isChecked(), true)
  assert.is(await page.getByLabel('Labels').inputValue(), 'half typ')
  assert.equal(opened.complaints, [])
})

test('disks do not take away the field in which a serial number is being typed', async () => {
  await using opened = await openContext(shared.browser, shared.site)
  const page = await opened.context.newPage()
  await logIn(page)
  await shared.site.boxes.boot(12)
  await page.goto(`/ui/machines/${macOf(12)}`)
  const field = page.getByLabel('Serial number, if you know it')
  await field.pressSequentially(serialOf(12).slice(0, 5))
  await shared.site.boxes.tellDisks(12)
  await page.getByText('Supermicro').waitFor({ state: 'attached' })
  await field.pressSequentially(serialOf(12).slice(5))
  assert.is(await field.inputValue(), serialOf(12))
  await page.keyboard.press('Tab')
  await page.getByRole('radio', { name: /^Samsung SSD 980/, checked: true }).waitFor()
  assert.equal(opened.complaints, [])
})

test('an open form that nobody edits follows what others save', async () => {
  await using opened = await openContext(shared.browser, shared.site)
  const page = await opened.context.newPage()
  await logIn(page)
  await shared.site.boxes.boot(10)
  await shared.site.boxes.tellDisks(10)
  await page.goto(`/ui/machines/${macOf(10)}`)
  const data = { boot_mode: 'flasher-tui', name: 'by a script', target_disk_serial: serialOf(10) }
  await page.request.put(`/machines/${macOf(10)}`, { data })
  await page.getByRole('radio', { name: /^Open the wizard/, checked: true }).waitFor()
  assert.is(await page.getByRole('radio', { name: /^Samsung SSD 980/ }).isChecked(), true)
  assert.is(await page.getByLabel('Name').inputValue(), 'by a script')
  assert.equal(opened.complaints, [])
})

test('a filtered page shows only what it asked for', async () => {
  await using opened = await openContext(shared.browser, shared.site)
  const page = await opened.context.newPage()
  await logIn(page)
  await page.goto('/ui/machines?q=label:mine')
  await page.getByText('No matching machines').waitFor()
  await shared.site.boxes.boot(8)
  await page.request.put(`/machines/${macOf(8)}`, { data: { labels: ['mine'] } })
  await page.locator(rowOf(8)).waitFor()
  assert.is(await page.locator('#rows tr').count(), 1)
})

test('a silent server is shown as disconnected until it is back, and no form is sent to it', async () => {
  await using opened = await openContext(shared.browser, shared.site)
  const page = await opened.context.newPage()
  await logIn(page)
  await page.goto('/ui/machines')
  await page.locator(rowOf(1)).waitFor()
  await shared.site.stop()
  const banner = page.getByText('No connection to the server since')
  await banner.waitFor({ timeout: 10_000 })
  // Neither a press nor Enter in a field leaves the page.
  const [held, address] = [page.locator('#content button[data-held]').first(), page.url()]
  assert.match(String(await held.getAttribute('title')), 'Nothing is sent')
  await held.dispatchEvent('click')
  await page.evaluate(() => document.querySelector<HTMLFormElement>('form#bulk')?.requestSubmit())
  assert.match(String(await page.locator('#spoken').textContent()), 'Nothing is sent')
  assert.is(page.url(), address)
  await using again = await shared.site.start()
  await banner.waitFor({ state: 'hidden', timeout: 10_000 })
  await page.locator('button[data-held]').first().waitFor({ state: 'detached' })
  await shared.site.boxes.boot(20)
  await page.locator(rowOf(20)).waitFor()
  assert.ok(again.url)
  // A page that is open would ask again and again while its server ends.
  await page.close()
})

test.run()
