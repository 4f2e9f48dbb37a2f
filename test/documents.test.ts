/** Links of the documents lead to pages and headings that are there. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readTexts } from '#test/support/arrows.ts'

const pages = readTexts(['*.md', 'docs/**/*.md'])
const FENCED = /^```\w*\n([^]*?)^```$/gm
/** What a reader takes for prose: what is fenced is not. */
const proseOf = (text: string) => text.replaceAll(FENCED, '')

/** The anchors of a page's headings, by the rule of the site that shows them. */
function anchorsOf(text: string): ReadonlySet<string> {
  const seen = new Map<string, number>()
  const anchors = [...proseOf(text).matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = '']) => {
    const words = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
    const anchor = words.replaceAll(/[^\p{L}\p{N}\p{M}_ -]/gu, '').replaceAll(' ', '-')
    const times = seen.get(anchor) ?? 0
    seen.set(anchor, times + 1)
    return times === 0 ? anchor : `${anchor}-${times}`
  })
  return new Set(anchors)
}

const test = suite('documents')

test('links lead to files and headings that are there', () => {
  const bad = [...pages].flatMap(([page, text]) =>
    [...proseOf(text).matchAll(/\]\(([^)\s]+)\)/g)]
      .map(([, target = '']) => target)
      .filter((target) => !/^[a-z]+:/.test(target) && !leads(page, target))
      .map((target) => `${page}: ${target}`),
  )
  assert.equal(bad, [])
})

function leads(page: string, target: string): boolean {
  const [path = '', anchor = ''] = target.split('#')
  const file = path === '' ? page : join(dirname(page), decodeURIComponent(path))
  if (!existsSync(file)) return false
  return anchor === '' || anchorsOf(readFileSync(file, 'utf8')).has(anchor)
}

test('the way through the code names files and folders that are there', () => {
  const text = pages.get('docs/find-your-way.md') ?? ''
  const named = [...text.matchAll(/`((?:[\w.-]+\/)+[\w.-]*)`/g)].map(([, path = '']) => path)
  const paths = named.filter((path) => !/^(?:current|earlier|rules)\/$/.test(path))
  assert.ok(paths.length > 60)
  assert.equal(
    paths.filter((path) => !existsSync(path) && !existsSync(`runtime/${path}`)),
    [],
  )
})

test.run()
