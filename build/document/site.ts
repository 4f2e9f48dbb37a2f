/** The site of the documentation: its navigation, and pages without inline scripts and styles, as the server's policy has it. */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { DefaultTheme, MarkdownRenderer, UserConfig } from 'vitepress'
import { GROUPS } from './chapters.ts'

interface SiteOptions {
  readonly version: string
  /** The folder of Markdown, with the README as `index.md`. */
  readonly source: string
  readonly outDir: string
}

/** Where the server serves it. */
const BASE = '/docs/'

export const configure = ({
  version,
  source,
  outDir,
}: SiteOptions): UserConfig<DefaultTheme.Config> => ({
  title: 'flasher',
  base: BASE,
  outDir,
  cacheDir: join(source, '.vitepress/cache'),
  metaChunk: true,
  // The index of the search has pages in the order in which they were rendered.
  buildConcurrency: 1,
  // By default they depend on where the folder lies.
  vue: { features: { componentIdGenerator: idOfComponent } },
  // Otherwise it adds a style to the page.
  appearance: { disableTransition: false },
  // Files that are no pages lie in `public`.
  ignoreDeadLinks: [/\.(cast|cfg|container|yaml)$/],
  markdown: {
    highlight: (code) => `<pre v-pre tabindex="0"><code>${escape(code)}</code></pre>`,
    config: (md) => keepMarkdown(md, source),
  },
  transformHtml: (code) => code.replaceAll(INLINE_SCRIPT, extract(outDir)).replaceAll(STYLE, ''),
  themeConfig: {
    nav: [{ text: version, link: '/' }],
    outline: [2, 3],
    search: {
      provider: 'local',
      options: {
        // Decisions are for those who change the program.
        _render: (text, env, md) =>
          env.relativePath.startsWith('decisions/') ? '' : md.render(text, env),
      },
    },
    sidebar: GROUPS.map(({ title, pages }) => ({
      text: title,
      items: pages.map((page) => ({ text: titleOf(source, page), link: `/${page}` })),
    })),
  },
})

const idOfComponent = (
  file: string,
  text: string,
  _isProduction: boolean | undefined,
  hash: (text: string) => string,
) => hash(basename(file) + text)

/** The page's first heading. */
const titleOf = (source: string, page: string): string =>
  /^# (.*)$/m.exec(readFileSync(join(source, `${page}.md`), 'utf8'))?.[1] ?? page

/** What looks like an expression of Vue is text, and links that lead out of the folder are text alone. */
function keepMarkdown(md: MarkdownRenderer, source: string): void {
  const { code_inline: code } = md.renderer.rules
  md.renderer.rules.code_inline = (tokens, at, ...more) => {
    tokens[at]?.attrSet('v-pre', '')
    return code?.(tokens, at, ...more) ?? ''
  }
  md.renderer.rules.text = (tokens, at) =>
    md.utils.escapeHtml(tokens[at]?.content ?? '').replaceAll('{{', '&#123;&#123;')
  md.core.ruler.push('links-out', ({ tokens, env }) => {
    const folder = dirname(String(env.relativePath ?? ''))
    let isOut = false
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      if (token.type === 'link_close' && isOut) token.tag = 'span'
      if (token.type !== 'link_open') continue
      const href = token.attrGet('href') ?? ''
      const path = join(source, folder, href.replace(/#.*/, ''))
      isOut = !/^([a-z]+:|#)/.test(href) && !existsSync(path)
      if (isOut) Object.assign(token, { tag: 'span', attrs: null })
      else if (existsSync(join(path, 'README.md'))) token.attrSet('href', `${href}/README.md`)
    }
  })
}

const escape = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

const INLINE_SCRIPT = /<script id="([\w-]+)">(.*?)<\/script>/gs
const STYLE = / style="[^"]*"/g

/** Writes an inline script to a file, and returns the tag that loads it. */
const extract = (outDir: string) => (_: string, id: string, script: string) => {
  const digest = createHash('sha256').update(script).digest('hex').slice(0, 8)
  const name = `assets/${id}.${digest}.js`
  mkdirSync(join(outDir, 'assets'), { recursive: true })
  writeFileSync(join(outDir, name), script)
  return `<script src="${BASE}${name}"></script>`
}
