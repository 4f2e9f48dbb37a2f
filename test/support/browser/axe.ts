/** What axe finds wrong with a page: rules of access that it breaks, and where. */
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { BrowserContext, Page } from 'playwright-core'
import * as assert from 'uvu/assert'

const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

interface Violation {
  readonly id: string
  readonly nodes: readonly { readonly html: string }[]
}

/** Not as a script of the page: its policy lets none in. */
export const addAxe = (context: BrowserContext) => context.addInitScript({ content: axe })

/**
 * Judges what a page looks like once its transitions have ended: halfway colours are nobody's choice. The size
 * of targets is judged too, which axe leaves out unless it is asked.
 */
export async function listViolations(
  page: Page,
  options: object = { rules: { 'target-size': { enabled: true } } },
): Promise<readonly string[]> {
  // Half a page has no landmarks, and links that end within their name.
  await page.waitForLoadState()
  return page.evaluate(async (run) => {
    // Those in what is folded never end by themselves.
    for (const each of document.getAnimations()) if (each instanceof CSSTransition) each.finish()
    const { violations: found }: { violations: Violation[] } = await Reflect.get(
      globalThis,
      'axe',
    ).run(run)
    return found.flatMap(({ id, nodes }) =>
      nodes.slice(0, 3).map(({ html }) => `${id}: ${html.slice(0, 160)}`),
    )
  }, options)
}

/** Nothing is wider than the window. */
export async function checkWidth(page: Page, what: string): Promise<void> {
  const [wide = 0, room] = await page.evaluate(() => [
    document.documentElement.scrollWidth,
    document.documentElement.clientWidth,
  ])
  assert.ok(wide <= (room ?? 0), `${what} is ${wide} wide, not ${room}`)
}

/** Axe finds nothing, light and dark: there only the colours are others. */
export async function checkSchemes(page: Page, what: string): Promise<void> {
  assert.equal(await listViolations(page), [], what)
  await page.emulateMedia({ colorScheme: 'dark' })
  const dark = await listViolations(page, { runOnly: ['color-contrast', 'link-in-text-block'] })
  assert.equal(dark, [], `${what}, dark`)
  await page.emulateMedia({ colorScheme: 'light' })
}

/** The page fits and axe finds nothing, wide and narrow, light and dark. */
export async function checkLooks(page: Page, what: string): Promise<void> {
  for (const width of [1280, 390]) {
    await page.setViewportSize({ width, height: 844 })
    await checkWidth(page, `${what} at ${width}`)
    await checkSchemes(page, `${what} at ${width}`)
  }
  await page.setViewportSize({ width: 1280, height: 844 })
}
