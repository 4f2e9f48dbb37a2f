/** Makes the documentation as a PDF: `document.ts --docs DIR --version V --epoch S --out FILE`; runs among the tools of build/document/tools.conf. */
import { readFileSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { extname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { $ } from 'zx/core'
import { findBrokenLinks, renderBook } from '#build/document/book.ts'
import { renderChapter } from '#build/document/chapter.ts'
import { listChapters } from '#build/document/chapters.ts'
import { renderStill } from '#build/document/picture.ts'

const LOOK = 'build/document'
const SVG = 'image/svg+xml'
/** The types of pictures. */
const TYPES: Readonly<Record<string, string>> = { '.png': 'image/png', '.svg': SVG }

const text = { type: 'string', default: '' } as const
const { docs, version, epoch, out } = parseArgs({
  options: { docs: text, version: text, epoch: text, out: text },
}).values

const folder = await mkdtemp(`${resolve(out)}.`)
try {
  const book = join(folder, 'book.html')
  await writeFile(book, await makeBook())
  const run = $({
    quiet: true,
    env: {
      ...process.env,
      FONTCONFIG_FILE: resolve(LOOK, 'fonts.conf'),
      XDG_CACHE_HOME: folder,
      // Fonts carry the time when they were cut to the letters in use.
      SOURCE_DATE_EPOCH: epoch,
    },
  })
  const { stderr } = await run`weasyprint --pdf-identifier flasher-${version} ${book} ${out}`
  console.log(stderr)
  if (/ERROR|unsupported by fonts/.test(stderr)) {
    throw new Error('a part of the documentation could not be drawn')
  }
} finally {
  await rm(folder, { recursive: true })
}

async function makeBook(): Promise<string> {
  const paths = (await readdir(docs, { recursive: true })).filter((path) => path.endsWith('.md'))
  const chapters = listChapters(paths)
  const known = new Set(chapters.map(({ id }) => id))
  const run = $({ quiet: true })
  const rendered = []
  for (const chapter of chapters) {
    const { stdout } =
      await run`cmark-gfm --extension table --extension strikethrough --extension autolink ${join(docs, chapter.path)}`
    rendered.push(renderChapter(stdout, chapter, known))
  }
  const style = await readFile(join(LOOK, 'book.css'), 'utf8')
  const book = renderBook(rendered, { version, epoch: Number(epoch), style })
  const broken = findBrokenLinks(book)
  if (broken.length > 0) throw new Error(`links lead nowhere: ${broken.join(', ')}`)
  return inlinePictures(book)
}

/** Pictures are named in the PDF by their addresses, which must not depend on where the checkout lies. */
function inlinePictures(book: string): string {
  return book.replaceAll(/<img src="([^":]+)"/g, (_, src: string) => {
    const type = TYPES[extname(src)]
    if (type === undefined) throw new Error(`${src} is no picture that can be printed`)
    const picture = readFileSync(join(docs, src))
    const bytes = type === SVG ? Buffer.from(renderStill(picture.toString('utf8'))) : picture
    return `<img src="data:${type};base64,${bytes.toString('base64')}"`
  })
}
