/** The beginning of tests that open pages themselves: one browser, and where wanted one site, for a whole file. */
import type { Browser } from 'playwright-core'
import type { Test } from 'uvu'
import * as assert from 'uvu/assert'
import { openBrowser, startSite, type WebSite } from './browser.ts'

type Suite = Pick<Test, 'before' | 'after'>

/** Opens a browser before the first test of a suite and closes it after the last one. */
export function createSharedBrowser(test: Suite) {
  let opened: Browser | null = null
  test.before(async () => {
    opened = await openBrowser()
  })
  test.after(() => opened?.close())
  return {
    get browser(): Browser {
      assert.ok(opened, 'the suite has begun')
      return opened
    },
  }
}

/** The same with a site beside it. */
export function createSharedSite(test: Suite) {
  let opened: { readonly browser: Browser; readonly site: WebSite } | null = null
  test.before(async () => {
    const [browser, site] = await Promise.all([openBrowser(), startSite()])
    opened = { browser, site }
  })
  test.after(async () => {
    await opened?.browser.close()
    await opened?.site[Symbol.asyncDispose]()
  })
  const current = () => {
    assert.ok(opened, 'the suite has begun')
    return opened
  }
  return {
    get browser(): Browser {
      return current().browser
    },
    get site(): WebSite {
      return current().site
    },
  }
}
