/** The documentation as a book: chapters in order, and links that hold in the whole of it. */
import { readdirSync } from 'node:fs'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { findBrokenLinks, renderBook } from '#build/document/book.ts'
import { renderChapter } from '#build/document/chapter.ts'
import { listChapters } from '#build/document/chapters.ts'
import { renderStill } from '#build/document/picture.ts'

const test = suite('book')
const known = new Set(['pxe', 'usb', 'decisions-0001-x', 'decisions-README'])
const pxe = { id: 'pxe', path: 'pxe.md' }
const render = (html: string, chapter = pxe) => renderChapter(html, chapter, known).html

test('every document is a chapter, once', () => {
  const paths = readdirSync('docs', { recursive: true, encoding: 'utf8' })
  const documents = paths.filter((path) => path.endsWith('.md'))
  const chapters = listChapters(documents)
  assert.equal(chapters.map(({ path }) => path).toSorted(), documents.toSorted())
  assert.is(chapters[0]?.path, 'usb.md')
  const decisions = chapters.filter(({ path }) => path.startsWith('decisions/'))
  assert.is(decisions[0]?.path, 'decisions/README.md')
  assert.equal(chapters.slice(-decisions.length), decisions)
})

test('a document that nobody placed comes before the decisions', () => {
  const paths = ['decisions/0001-x.md', 'zebra.md', 'usb.md']
  assert.equal(
    listChapters(paths).map(({ id }) => id),
    ['usb', 'zebra', 'decisions-0001-x'],
  )
})

test('headings get anchors as hosting sites make them, and say what level they have', () => {
  const { html, headings } = renderChapter(
    '<h1>Network boot</h1><h2>A &amp; B: <code>x_y</code>!</h2><h2>Again</h2><h2>Again</h2>',
    pxe,
    known,
  )
  assert.equal(
    headings.map(({ level, anchor }) => [level, anchor]),
    [
      [1, 'pxe'],
      [2, 'pxe--a--b-x_y'],
      [2, 'pxe--again'],
      [2, 'pxe--again-1'],
    ],
  )
  assert.match(html, '<h2 id="pxe--again-1">Again</h2>')
})

test('links lead to chapters, to the web, or nowhere', () => {
  const rows = [
    ['<a href="usb.md">t</a>', '<a href="#usb">t</a>'],
    ['<a href="usb.md#make-one">t</a>', '<a href="#usb--make-one">t</a>'],
    ['<a href="#own">t</a>', '<a href="#pxe--own">t</a>'],
    ['<a href="decisions/0001-x.md">t</a>', '<a href="#decisions-0001-x">t</a>'],
    ['<a href="https://example.org/">t</a>', '<a href="https://example.org/">t</a>'],
    ['<a href="../AGENTS.md">t</a>', 't'],
    ['<img src="pictures/a.png" alt="b" />', '<img src="pictures/a.png" alt="b" />'],
  ] as const
  for (const [given, wanted] of rows) assert.is(render(given), `<section>${wanted}</section>`)
  const decision = { id: 'decisions-0001-x', path: 'decisions/0001-x.md' }
  assert.match(render('<a href="../pxe.md#x">t</a>', decision), '<a href="#pxe--x">')
  assert.match(render('<img src="../pictures/a.png">', decision), '<img src="pictures/a.png"')
})

test('the book has a table of contents without deep headings, and broken links are found', () => {
  const chapter = renderChapter(
    '<h1>One</h1><h2>Two</h2><h3>Three</h3><a href="#two">t</a><a href="#four">t</a>',
    pxe,
    known,
  )
  const book = renderBook([chapter], { version: '1.2.3', epoch: 1_800_000_000, style: 'a{}' })
  assert.match(book, '<li class="level-2"><a href="#pxe--two">Two</a></li>')
  assert.not.match(book, '<li class="level-3">')
  assert.match(book, 'Documentation of version 1.2.3, 2027-01-15')
  assert.equal(findBrokenLinks(book), ['pxe--four'])
})

test('a drawing that moves is printed as it ends', () => {
  const frame = '<g visibility="hidden"><set/>'
  assert.is(
    renderStill(`<svg>${frame}1</g>${frame}2</g></svg>`),
    `<svg>${frame}1</g><g><set/>2</g></svg>`,
  )
  assert.is(renderStill('<svg><g/></svg>'), '<svg><g/></svg>')
})

test.run()
