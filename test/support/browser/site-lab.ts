/** The beginning of tests of pages: one browser and one site for a whole file, and for each test a page that is logged in. */
import type { Browser, Page } from 'playwright-core'
import type { Test } from 'uvu'
import * as assert from 'uvu/assert'
import { addAxe } from './axe.ts'
import {
  logIn,
  openBrowser,
  openContext,
  startSite,
  type ContextOptions,
  type WebSite,
} from './browser.ts'

type WorkOnPage = (page: Page, site: WebSite) => Promise<void>

/**
 * Opens browser and site before the first test of a suite and has `settle` give the site what the tests
 * are about; closes both after the last one.
 */
export function createSiteLab(
  test: Pick<Test, 'before' | 'after'>,
  settle: WorkOnPage = async () => {},
  start = () => startSite(),
) {
  let opened: { readonly browser: Browser; readonly site: WebSite } | null = null

  function current() {
    assert.ok(opened, 'the suite has begun')
    return opened
  }

  /** A context of its own, which axe can look at. */
  async function open(options: ContextOptions = {}) {
    const { browser, site } = current()
    const own = await openContext(browser, site, options)
    await addAxe(own.context)
    return own
  }

  test.before(async () => {
    const [browser, site] = await Promise.all([openBrowser(), start()])
    opened = { browser, site }
    await using own = await open()
    const page = await own.context.newPage()
    await logIn(page)
    await settle(page, site)
  })
  test.after(async () => {
    await opened?.browser.close()
    await opened?.site[Symbol.asyncDispose]()
  })

  return {
    open,
    /** Works on a page that is logged in, and checks that it had nothing to complain of. */
    async withPage(work: WorkOnPage, options: ContextOptions = {}): Promise<void> {
      await using own = await open(options)
      const page = await own.context.newPage()
      await logIn(page)
      await work(page, current().site)
      assert.equal(own.complaints, [])
    },
  }
}
