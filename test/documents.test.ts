/** What the documents name is there: pages, headings, files, scripts, commands and their options. */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readTexts } from './support/arrows.ts'
import { misuseOfLine } from './support/documents/commands.ts'

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

/** What stands between backquotes, and each line for a shell; what a screen showed is no command. */
const codeOf = (text: string): readonly string[] => [
  ...[...proseOf(text).matchAll(/`([^`\n]+)`/g)].map(([, code = '']) => code),
  ...[...text.matchAll(/^```sh\n([^]*?)^```$/gm)].flatMap(([, block = '']) => block.split('\n')),
]

const code = [...pages].flatMap(([page, text]) => codeOf(text).map((line) => ({ page, line })))
const { scripts }: { readonly scripts: Readonly<Record<string, string>> } = JSON.parse(
  readFileSync('package.json', 'utf8'),
)

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

test('what is installed by its version has the version of this checkout', () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
  const files = ['docs/appliance.md', ...globSync('docs/containers/*')]
  const named =
    /\bflasher(?:-\w+:|_|-lab_|-containers-x86_64-v| server )(\d+\.\d+\.\d+)|\$name:(\d\S*)/g
  const bad = files.flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(named)]
      .filter(([, one, other]) => (one ?? other) !== version)
      .map(([text]) => `${file}: ${text}`),
  )
  assert.equal(bad, [])
  assert.ok(files.length > 4)
})

/** Pages of another project that our files cite. */
const OTHERS: ReadonlySet<string> = new Set(['docs/interop/qcow2'])

test('pages that comments and messages cite are there', () => {
  const texts = readTexts(['{appliance,build,runtime,test}/**/*.{ts,mjs,js}', 'overlays/**/*.sh'])
  const names = globSync('docs/**')
  const bad = [...texts].flatMap(([file, text]) =>
    (text.match(/\bdocs\/[\w/-]*\w(?:\.md)?/g) ?? [])
      .filter((cited) => !OTHERS.has(cited) && !names.some((name) => name.startsWith(cited)))
      .map((cited) => `${file}: ${cited}`),
  )
  assert.equal(bad, [])
})

test('the page on the architecture tells of every folder', () => {
  const text = readFileSync('docs/architecture.md', 'utf8')
  const folders = new Set(
    globSync('{appliance,build,runtime}/**/*.ts').map((file) => dirname(file)),
  )
  assert.equal(
    [...folders].filter(
      (folder) => !text.includes(`${folder.slice(folder.lastIndexOf('/') + 1)}/`),
    ),
    [],
  )
})

test('the list of decisions names each page by its title', () => {
  const list = readFileSync('docs/decisions/README.md', 'utf8')
  const missing = globSync('docs/decisions/0*.md').filter((path) => {
    const [title = ''] = readFileSync(path, 'utf8').split('\n')
    return !list.includes(`(${basename(path)}): ${title.slice('# '.length)}\n`)
  })
  assert.equal(missing, [])
})

test('scripts that documents say to run exist', () => {
  const own = new Set([...Object.keys(scripts), 'exec', 'pack', 'install', 'publish'])
  const bad = code.flatMap(({ page, line }) =>
    [...line.matchAll(/\bpnpm ([a-z][\w:-]*)/g)]
      .map(([, name = '']) => name.replace(/:$/, ''))
      .filter((name) => !own.has(name))
      .map((name) => `${page}: pnpm ${name}`),
  )
  assert.equal(bad, [])
})

test('commands and options that documents name exist', () => {
  const bad = code.flatMap(({ page, line }) => {
    const wrong = misuseOfLine(line)
    return wrong === null ? [] : [`${page}: ${line}: ${wrong}`]
  })
  assert.equal(bad, [])
})

test.run()
