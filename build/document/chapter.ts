/** Turns the HTML of one Markdown file into a chapter of a book: its anchors and links hold in the whole of it. */
import { posix } from 'node:path'
import { idOf, type Chapter } from './chapters.ts'

interface Heading {
  readonly level: number
  readonly anchor: string
  /** HTML, without links. */
  readonly title: string
}

export interface RenderedChapter {
  readonly html: string
  readonly headings: readonly Heading[]
}

/**
 * Gives headings their anchors and makes links lead to them.
 *
 * @param known has the ids of all chapters; links to other files become plain text.
 */
export function renderChapter(
  html: string,
  { id, path }: Chapter,
  known: ReadonlySet<string>,
): RenderedChapter {
  const headings: Heading[] = []
  const used = new Map<string, number>()
  const anchored = html.replaceAll(
    /<h([1-6])>(.*?)<\/h\1>/gs,
    (_, level: string, title: string) => {
      const anchor = headings.length === 0 ? id : `${id}--${takeSlug(slugOf(title), used)}`
      headings.push({ level: Number(level), anchor, title: stripLinks(title) })
      return `<h${level} id="${anchor}">${title}</h${level}>`
    },
  )
  const folder = posix.dirname(path)
  const linked = anchored
    .replaceAll(/<a href="([^"]*)"[^>]*>(.*?)<\/a>/gs, (whole, href: string, text: string) => {
      if (/^(https?|mailto):/.test(href)) return whole
      const target = findTarget(href, id, folder, known)
      return target === null ? text : `<a href="#${target}">${text}</a>`
    })
    .replaceAll(/<img src="([^":]*)"/g, (_, src: string) => `<img src="${posix.join(folder, src)}"`)
  return { html: `<section>${linked}</section>`, headings }
}

/** As hosting sites make anchors of headings: documents link to those. */
function slugOf(title: string): string {
  return decode(title.replaceAll(/<[^>]*>/g, ''))
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_\- ]/gu, '')
    .replaceAll(' ', '-')
}

function takeSlug(slug: string, used: Map<string, number>): string {
  const times = used.get(slug) ?? 0
  used.set(slug, times + 1)
  return times === 0 ? slug : `${slug}-${times}`
}

const decode = (text: string) =>
  text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&')

const stripLinks = (title: string) => title.replaceAll(/<\/?a\b[^>]*>/g, '')

/** The anchor in the book; null: it leads out of it. */
function findTarget(href: string, own: string, folder: string, known: ReadonlySet<string>) {
  const [file = '', fragment] = href.split('#')
  const id = file === '' ? own : idOf(posix.join(folder, file))
  if (!known.has(id)) return null
  return fragment === undefined ? id : `${id}--${decodeURIComponent(fragment)}`
}
