/** What axe finds wrong with a page: rules of access that it breaks, and where. */
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { BrowserContext, Page } from 'playwright-core'

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
export async function listViolations(page: Page): Promise<readonly string[]> {
  // Half a page has no landmarks, and links that end within their name.
  await page.waitForLoadState()
  return page.evaluate(async () => {
    const moving = document.getAnimations().filter((each) => each instanceof CSSTransition)
    await Promise.allSettled(moving.map(({ finished }) => finished))
    const { violations: found }: { violations: Violation[] } = await Reflect.get(
      globalThis,
      'axe',
    ).run({ rules: { 'target-size': { enabled: true } } })
    return found.flatMap(({ id, nodes }) =>
      nodes.slice(0, 3).map(({ html }) => `${id}: ${html.slice(0, 160)}`),
    )
  })
}
