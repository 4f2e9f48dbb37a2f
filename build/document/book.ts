/** The whole documentation as one HTML page for printing: title, table of contents, chapters. */
import type { RenderedChapter } from './chapter.ts'

interface BookOptions {
  readonly version: string
  /** Seconds since 1970. */
  readonly epoch: number
  readonly style: string
}

/** Deeper headings are left out of the table of contents. */
const DEPTH = 2

/** Renders the page; its table of contents has headings down to the second level. */
export function renderBook(
  chapters: readonly RenderedChapter[],
  { version, epoch, style }: BookOptions,
): string {
  const date = new Date(epoch * 1000).toISOString()
  const listed = chapters.flatMap(({ headings }) => headings.filter(({ level }) => level <= DEPTH))
  const rows = listed.map(
    ({ level, anchor, title }) =>
      `<li class="level-${level}"><a href="#${anchor}">${title}</a></li>`,
  )
  return [
    '<!doctype html>',
    `<html lang="en"><head><meta charset="utf-8"><title>Flasher ${version}</title>`,
    `<meta name="dcterms.created" content="${date}">`,
    `<style>${style}</style></head><body>`,
    `<header><h1>Flasher</h1><p>Documentation of version ${version}, ${date.slice(0, 10)}</p></header>`,
    `<nav><h2>Contents</h2><ul>${rows.join('\n')}</ul></nav>`,
    ...chapters.map(({ html }) => html),
    '</body></html>\n',
  ].join('\n')
}

/** Lists links to anchors that no heading has. */
export function findBrokenLinks(book: string): readonly string[] {
  const anchors = new Set([...book.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id))
  const links = [...book.matchAll(/<a href="#([^"]+)"/g)].map(([, id = '']) => id)
  return [...new Set(links.filter((id) => !anchors.has(id)))]
}
