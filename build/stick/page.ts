/** Puts the parts of the page that fills a stick together to one file that needs no network. */
import { createHash } from 'node:crypto'

/** A file of the stick. */
export interface StickFile {
  /** Below the stick's top, with slashes. */
  readonly path: string
  readonly bytes: number
  /** The digest, in hexadecimal. */
  readonly sha256: string
}

interface PageTemplate {
  /** The template: words between @ signs, in comments where they stand for elements. */
  readonly html: string
  readonly css: string
  /** Modules that import only each other; they run as one, in this order. */
  readonly scripts: readonly string[]
}

interface StickRelease {
  readonly version: string
  readonly files: readonly StickFile[]
}

/**
 * Renders the page. It knows the digests of one release's files and takes no others, and its policy
 * allows no script but its own and no connection at all.
 *
 * @throws {Error} A word between @ signs is unknown.
 */
export function renderPage({ html, css, scripts }: PageTemplate, release: StickRelease): string {
  const script = scripts.map(withoutImports).join('\n')
  const policy = [
    "default-src 'none'",
    `script-src ${renderHash(script)}`,
    `style-src ${renderHash(css)}`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ')
  // A name cannot end the element that it stands in.
  const data = JSON.stringify(release).replaceAll('<', String.raw`\u003c`)
  const values: Readonly<Record<string, string>> = {
    policy,
    version: release.version,
    // Whole elements: the policy has digests of exactly what is in them.
    style: `<style>${css}</style>`,
    scripts: `<script id="release" type="application/json">${data}</script>\n<script type="module">${script}</script>`,
  }
  return html.replaceAll(/<!-- @([a-z]+)@ -->|@([a-z]+)@/g, (_, element: string, word: string) => {
    const name = element ?? word
    const value = values[name]
    if (value === undefined) throw new Error(`page.html has an unknown word: @${name}@`)
    return value
  })
}

/** All of them share one scope in the page. */
const withoutImports = (script: string) =>
  script.replaceAll(/^import .*\n/gm, '').replaceAll(/^export /gm, '')

const renderHash = (text: string) =>
  `'sha256-${createHash('sha256').update(text).digest('base64')}'`
