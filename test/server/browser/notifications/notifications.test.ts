/** The pages of notifications in Chromium: a receiver is added, refused, tested, given a rule and removed; narrow and without scripts. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { addAxe, checkWidth, listViolations } from '#test/support/browser/axe.ts'
import { logIn, openContext, startSite } from '#test/support/browser/browser.ts'
import { createSharedBrowser } from '#test/support/browser/shared.ts'
import { SIGNING_KEY } from '#test/support/notify/notify-lab.ts'
import { startReceiver } from '#test/support/notify/receivers.ts'

const test = suite('the browser: notifications')
const shared = createSharedBrowser(test)

for (const javaScriptEnabled of [true, false]) {
  const how = javaScriptEnabled ? 'with scripts' : 'without scripts'
  test(`a receiver is added, tested, given a rule and removed, ${how}`, async () => {
    await using receiver = await startReceiver()
    await using site = await startSite({ FLASHER_NOTIFY_NETWORKS: '127.0.0.0/8' })
    const viewport = javaScriptEnabled ? { width: 390, height: 844 } : { width: 1280, height: 800 }
    await using opened = await openContext(shared.browser, site, { javaScriptEnabled, viewport })
    if (javaScriptEnabled) await addAxe(opened.context)
    const page = await opened.context.newPage()
    const check = async () => {
      if (!javaScriptEnabled) return
      assert.equal(await listViolations(page), [])
      await checkWidth(page, page.url())
    }
    await logIn(page)
    await page.goto('/ui/notifications')
    await page.getByText('No receivers yet').waitFor()
    await check()
    await page.getByRole('link', { name: 'Add a receiver: Webhook' }).click()
    await page.getByLabel('Name').fill('on-call')
    await page.getByLabel('Address').fill(receiver.url)
    await page.getByLabel('Signing secret').fill('too short')
    await page.getByRole('button', { name: 'Add receiver' }).click()
    await page.locator('#secret-error').waitFor()
    assert.is(await page.getByLabel('Name').inputValue(), 'on-call')
    assert.is(await page.getByLabel('Signing secret').inputValue(), '')
    await check()
    await page.getByLabel('Signing secret').fill(SIGNING_KEY)
    await page.getByRole('button', { name: 'Add receiver' }).click()
    await page.getByText('on-call was added').waitFor()
    await page.getByRole('button', { name: 'Send a test' }).click()
    await page.getByText('The test to on-call was delivered.').waitFor()
    assert.is(receiver.received.length, 1)
    await check()
    await page.getByRole('link', { name: 'Add a rule' }).click()
    await page.getByLabel('Only machines that match').fill('stat:failed')
    await page.getByRole('button', { name: 'Save rule' }).click()
    await page.getByText('Select at least one kind of event.').waitFor()
    await page.getByText('Invalid search: stat:failed').waitFor()
    await check()
    await page.getByLabel('Only machines that match').fill('label:rack-3')
    await page.getByLabel('Flash failed').check()
    await page.getByRole('button', { name: 'Save rule' }).click()
    await page.getByText('of machines that match label:rack-3').waitFor()
    await page.getByRole('button', { name: 'Remove…' }).click()
    await page.getByRole('button', { name: 'Remove receiver' }).click()
    await page.getByText('on-call was removed.').waitFor()
    assert.equal(opened.complaints, [])
  })
}

test.run()
