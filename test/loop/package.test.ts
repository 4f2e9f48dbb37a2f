/** The npm package as its users get it: packed, laid into an empty project, and used there. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { zstdCompressSync } from 'node:zlib'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { renderTable } from '#kit/terminal/text/columns.ts'
import { makeBytes } from '#test/support/collect.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { readBlocks, readExamples, readPromise } from '#test/support/docs.ts'
import { startHostileServer } from '#test/support/http/hostile-server.ts'
import { digestOf, pushImage, startRegistry } from '#test/support/http/registry.ts'

const execute = promisify(execFile)

interface PackedProject extends AsyncDisposable {
  readonly path: string
  /** What the tarball holds, without its first folder. */
  readonly files: readonly string[]
}

const PACKAGE = 'flasher-lab'

/** Its dependencies are links to this checkout's own; nothing else can be found from there. */
async function installPacked(): Promise<PackedProject> {
  const path = await mkdtemp(join(tmpdir(), 'flasher-packed-'))
  const remove = () => rm(path, { recursive: true, force: true })
  try {
    const packed = await execute(
      'npm',
      ['pack', '--json', '--offline', '--pack-destination', path],
      {
        maxBuffer: 16 * 1024 * 1024,
      },
    )
    const tarball = join(path, nameIn(packed.stdout))
    const modules = join(path, 'node_modules')
    const home = join(modules, PACKAGE)
    await mkdir(join(modules, '.bin'), { recursive: true })
    await mkdir(home)
    await execute('tar', ['--extract', '--file', tarball, '--strip-components=1', '-C', home])
    const listed = await execute('tar', ['--list', '--file', tarball])
    const { dependencies, bin } = await readManifest(home)
    for (const name of [...dependencies, '@types/node']) await linkInto(modules, name)
    for (const [name, file] of bin) await symlink(join(home, file), join(modules, '.bin', name))
    await writeFile(join(path, 'package.json'), '{ "type": "module", "private": true }')
    const files = listed.stdout
      .trim()
      .split('\n')
      .map((name) => name.replace(/^package\//, ''))
    return { path, files, [Symbol.asyncDispose]: remove }
  } catch (thrown) {
    await remove()
    throw thrown
  }
}

async function linkInto(modules: string, name: string): Promise<void> {
  await mkdir(dirname(join(modules, name)), { recursive: true })
  await symlink(join(process.cwd(), 'node_modules', name), join(modules, name))
}

function nameIn(json: string): string {
  const answer: unknown = JSON.parse(json)
  const [first] = Array.isArray(answer) ? answer : []
  if (typeof first?.filename === 'string') return first.filename
  throw new Error('npm packed nothing')
}

async function readManifest(home: string) {
  const manifest: unknown = JSON.parse(await readFile(join(home, 'package.json'), 'utf8'))
  return {
    dependencies: namesOf(manifest, 'dependencies').map(([name]) => name),
    bin: namesOf(manifest, 'bin'),
  }
}

function namesOf(manifest: unknown, key: string): readonly (readonly [string, string])[] {
  if (typeof manifest !== 'object' || manifest === null) return []
  const table: unknown = new Map<string, unknown>(Object.entries(manifest)).get(key)
  if (typeof table !== 'object' || table === null) return []
  return Object.entries(table).map(([name, value]) => [name, String(value)])
}

const test = suite('package')
const isRoot = process.geteuid?.() === 0
const context: { project: PackedProject | null } = { project: null }

/** What each module exports at run time; the types of the same modules are checked below. */
const NAMES: Readonly<Record<string, readonly string[]>> = {
  catalog: ['CatalogError', 'fetchBytes', 'loadBytes', 'loadSource'],
  disks: ['listDisks'],
  flash: ['FlashError', 'executePlan', 'makePlan'],
  formatting: ['printInspect', 'printTable'],
  images: ['ImageError', 'defaultImageRoot', 'detectFormat', 'inspectImage', 'listImages'],
  oras: ['OrasError', 'isOrasUrl', 'parseRef', 'resolveRef'],
}

const TYPES = `
import type { Catalog, CatalogImage } from '${PACKAGE}/catalog'
import type { DiskRow } from '${PACKAGE}/disks'
import type { FlashPlan, FlashProgress, FlashRequest } from '${PACKAGE}/flash'
import type { Image, ImageFormat, ImageInfo } from '${PACKAGE}/images'
import type { OrasRef, ResolvedBlob } from '${PACKAGE}/oras'
export type All = [Catalog, CatalogImage, DiskRow, FlashPlan, FlashProgress, FlashRequest]
export type More = [Image, ImageFormat, ImageInfo, OrasRef, ResolvedBlob]
export const row = (disk: DiskRow): string => disk.path
// @ts-expect-error: a disk has no such field, so the types are really there.
export const wrong = (disk: DiskRow): string => disk.nothing
export const image = ({ name, location, format, sha256 }: CatalogImage): FlashRequest =>
  ({ image: location, target: name, format, sha256 })
`

function project(): PackedProject {
  if (context.project === null) throw new Error('it was not packed')
  return context.project
}

/** The examples of the installed declarations, as `example-<module>-<number>.ts`. */
async function listExamples() {
  const folder = join(project().path, 'node_modules', PACKAGE, 'dist/package/runtime/library')
  const lists = Object.keys(NAMES).map(async (module) => {
    const examples = readExamples(await readFile(join(folder, `${module}.d.ts`), 'utf8'))
    return examples.map((text, at) => ({ name: `example-${module}-${at}.ts`, text }))
  })
  return (await Promise.all(lists)).flat()
}

const run = (argv: readonly string[]) => {
  const { path } = project()
  const env = { PATH: process.env['PATH'] ?? '', HOME: path }
  return $({ cwd: path, env, quiet: true, verbose: false, nothrow: true })`${argv}`
}
const runScript = (name: string, args: readonly string[] = []) =>
  run([process.execPath, name, ...args])

test.before(async () => {
  context.project = await installPacked()
  for (const block of readBlocks('library.md', 'ts')) {
    const name = /^\/\/ (\S+\.ts)\n/.exec(block)?.[1] ?? ''
    await writeFile(join(project().path, name), block)
  }
  for (const { name, text } of await listExamples()) {
    await writeFile(join(project().path, name), text)
  }
})
test.after(async () => {
  await context.project?.[Symbol.asyncDispose]()
})

test('holds compiled programs and types, and no source that Node would have to strip', () => {
  const { files } = project()
  assert.equal(
    files.filter((name) => /\.[cm]?tsx?$/.test(name) && !name.endsWith('.d.ts')),
    [],
  )
  for (const name of [
    'LICENSE',
    'README.md',
    'docs/library.md',
    'docs/flasher.1',
    'docs/flasher-tui.1',
    'dist/package/dist/docs/index.html',
  ]) {
    assert.ok(files.includes(name), name)
  }
  const strange = files.filter(
    (name) =>
      !/^(dist\/package\/(appliance|dist\/docs|runtime)\/|docs\/|runtime\/bin\/[\w-]+\.mjs$)/.test(
        name,
      ),
  )
  assert.equal(strange.toSorted(), [
    'CHANGELOG.md',
    'LICENSE',
    'README.md',
    'dist/package/package.json',
    'package.json',
  ])
})

test('exports the names of the interface, and nothing else can be imported', async () => {
  const modules = Object.keys(NAMES)
  const script = `
    const all = {}
    for (const name of ${JSON.stringify(modules)}) {
      all[name] = Object.keys(await import('${PACKAGE}/' + name)).sort()
    }
    console.log(JSON.stringify(all))
    for (const name of ['', '/dist/package/runtime/engine/flash/flasher.js']) {
      await import('${PACKAGE}' + name).then(
        () => console.log('imported', name),
        ({ code }) => console.error(code),
      )
    }`
  await writeFile(join(project().path, 'names.mjs'), script)
  const { stdout, stderr, exitCode } = await runScript('names.mjs')
  assert.equal([exitCode, JSON.parse(stdout)], [0, NAMES], stderr)
  assert.match(stderr, /^(ERR_PACKAGE_PATH_NOT_EXPORTED\n){2}$/)
})

test('its types are right for the examples, with everything checked', async () => {
  const { path } = project()
  await writeFile(join(path, 'types.ts'), TYPES)
  await writeFile(
    join(path, 'tsconfig.json'),
    JSON.stringify({
      compilerOptions: {
        module: 'nodenext',
        target: 'esnext',
        types: ['node'],
        noEmit: true,
        strict: true,
        exactOptionalPropertyTypes: true,
        noUncheckedIndexedAccess: true,
        skipLibCheck: false,
      },
      include: ['*.ts'],
    }),
  )
  const { exitCode, stdout } = await run([join(process.cwd(), 'node_modules/.bin/tsc')])
  assert.equal([stdout, exitCode], ['', 0])
})

test('the programs run', async () => {
  const { version } = JSON.parse(await readFile('package.json', 'utf8'))
  for (const name of ['flasher', 'flasher-tui', 'flasher-web', 'flasher-cache']) {
    const program = join('node_modules/.bin', name)
    const { stdout, stderr, exitCode } = await runScript(program, ['--version'])
    assert.equal([exitCode, stdout, stderr], [0, `${name} ${version}\n`, ''])
  }
  const listed = await run(['node_modules/.bin/flasher', 'list', 'disks', '--json'])
  assert.equal([listed.exitCode, listed.stderr], [0, ''])
  assert.is(JSON.parse(listed.stdout).command, 'list-disks')
})

test('the examples: disks, images, catalogs, registries', async () => {
  const { path } = project()
  await writeFile(join(path, 'one.img'), makeBytes(8192))
  const listed = await runScript('list.ts', [path])
  assert.is(listed.exitCode, 0, listed.stderr)
  const { stdout: program } = await run(['node_modules/.bin/flasher', 'list', 'disks', '--json'])
  const { disks } = JSON.parse(program)
  const columns = ['path', 'size', 'model', 'serial', 'removable']
  assert.ok(listed.stdout.startsWith(renderTable(disks, columns)), listed.stdout)
  assert.match(listed.stdout, /format: img\nsize_bytes: 8192/)

  const entries =
    '[[images]]\nname = "a"\nsrc = "https://h/a.img"\n[[images]]\nname = "b"\nsrc = "c"'
  await using server = await startHostileServer((_, response) => {
    response.end(`version = 1\n${entries}`)
  })
  const catalog = await runScript('catalog.ts', [server.origin])
  assert.equal([catalog.exitCode, catalog.stdout], [0, 'a img from https://h/a.img\n'])
  assert.match(catalog.stderr, /^line 5: b: its source is no/)
  const none = await runScript('catalog.ts', ['./none.toml'])
  assert.equal([none.exitCode, none.stderr.includes('none.toml cannot be read')], [1, true])

  const bytes = makeBytes(5000)
  await using registry = await startRegistry()
  await pushImage(registry, 'lab/disk:v1', [{ bytes, title: 'disk.img' }])
  const blob = await runScript('blob.ts', [`oras://${registry.host}/lab/disk:v1`])
  assert.is(blob.exitCode, 0, blob.stderr)
  const [first, second = ''] = blob.stdout.split('\n')
  assert.is(first, `${registry.host} lab/disk v1`)
  assert.ok(second.endsWith(`/blobs/${digestOf(bytes)} ${digestOf(bytes)} 5000 disk.img`))
  const absent = await runScript('blob.ts', ['oras://h/a'])
  assert.equal([absent.exitCode, absent.stderr.startsWith('malformed')], [1, true])
})

if (isRoot) {
  test('the examples: a flash of a loop device, and one that is refused', async () => {
    const { path } = project()
    const bytes = makeBytes(3 * 1024 * 1024)
    await writeFile(join(path, 'two.img'), bytes)
    await using loop = await createLoop({ megabytes: 8 })
    const done = await runScript('flash.ts', ['two.img', loop.device])
    assert.equal([done.exitCode, done.stderr], [0, ''])
    assert.match(done.stdout, /^started\n(write .*\n)+synced\n[^]*verify[^]*done\n$|^started\n/)
    assert.ok(done.stdout.endsWith('done\n'))
    assert.ok((await readFile(loop.backing)).subarray(0, bytes.length).equals(bytes))
    const refused = await runScript('flash.ts', ['two.img', join(path, 'two.img')])
    assert.is(refused.exitCode, 1)
    assert.match(refused.stderr, /^plan-refused: .*not a block device/)
  })

  test('the examples in the declarations print what they promise', async () => {
    const { path } = project()
    const folder = join(path, 'examples')
    await mkdir(folder)
    const bytes = zstdCompressSync(makeBytes(3 * 1024 * 1024))
    await writeFile(join(folder, 'debian.img.zst'), bytes)
    await using loop = await createLoop({ megabytes: 8 })
    await using registry = await startRegistry()
    await pushImage(registry, 'lab/debian:13', [{ bytes, title: 'debian.img.zst' }])
    await using server = await startHostileServer((_, response) => {
      response.end('version = 1\n[[images]]\nname = "debian"\nsrc = "https://h/debian.img.zst"\n')
    })
    const examples = await listExamples()
    // Each function and class has one, and so has the type of callbacks.
    assert.is(examples.length, Object.values(NAMES).flat().length + 1)
    for (const { name, text } of examples) {
      const real = text
        .replaceAll('/dev/sdb', loop.device)
        .replaceAll('http://flasher-server:8080', server.origin)
        .replaceAll(
          'oras://registry.example/lab/debian:13',
          `oras://${registry.host}/lab/debian:13`,
        )
      await writeFile(join(path, name), real)
      const { exitCode, stdout, stderr } = await run([
        'env',
        '-C',
        folder,
        process.execPath,
        join(path, name),
      ])
      assert.is(exitCode, 0, `${name}: ${stderr}`)
      assert.match(stdout, readPromise(text), name)
    }
  })
}

test.run()
