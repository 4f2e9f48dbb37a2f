/** What a release has besides images: archives, the book, and how they are planned. */
import { execFileSync } from 'node:child_process'
import { mkdtempDisposableSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { renderTarball } from '#build/archive/tar.ts'
import { UsageError } from '#build/arguments.ts'
import { ownerOf } from '#build/cache/key.ts'
import { readRelease } from '#build/release-command.ts'
import { planParts } from '#build/release-parts.ts'

const test = suite('the parts of a release')
const OPTIONS = { folder: 'flasher_lab-1.2.3', epoch: 1_700_000_000 }

test('tar reads the archive: paths of any length, programs, links', async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-tar-'))
  const deep = `${'folder/'.repeat(18)}file`
  // The path is longer than the old fields of a header hold.
  const long = `maße/${'n'.repeat(200)}`
  const archive = await renderTarball(
    [
      { path: 'z', isProgram: false, content: Buffer.from('last') },
      { path: deep, isProgram: true, content: Buffer.alloc(1025, 'x') },
      { path: 'link', isProgram: false, content: { link: 'z' } },
      { path: long, isProgram: false, content: Buffer.alloc(512) },
    ],
    OPTIONS,
  )
  writeFileSync(join(folder.path, 'a.tar.gz'), archive)
  const tar = (...args: readonly string[]) =>
    execFileSync('tar', args, {
      cwd: folder.path,
      encoding: 'utf8',
      env: { TZ: 'UTC', PATH: process.env['PATH'] },
    })
  const listed = tar('tvzf', 'a.tar.gz').trim().split('\n')
  assert.is(listed.length, 4)
  assert.match(listed[0] ?? '', /^-rwxr-xr-x root\/root +1025 2023-11-14 22:13 .*\/file$/)
  assert.match(listed[1] ?? '', /^lrwxrwxrwx .*\/link -> z$/)
  tar('xzf', 'a.tar.gz')
  const read = (path: string) => readFileSync(join(folder.path, OPTIONS.folder, path), 'utf8')
  assert.equal([read('link'), read(deep).length, read(long).length], ['last', 1025, 512])
})

test('the order of entries makes no difference', async () => {
  const entry = fc.record({
    path: fc.stringMatching(/^[a-z]{1,12}$/),
    isProgram: fc.boolean(),
    content: fc.uint8Array({ maxLength: 1200 }).map((bytes) => Buffer.from(bytes)),
  })
  const entries = fc.uniqueArray(entry, { selector: ({ path }) => path, maxLength: 8 })
  await fc.assert(
    fc.asyncProperty(entries, async (some) => {
      const [one, two] = await Promise.all([
        renderTarball(some, OPTIONS),
        renderTarball(some.toReversed(), OPTIONS),
      ])
      assert.ok(one.equals(two))
    }),
  )
})

test('every step of the plan has its inputs, and what is handed over is made', () => {
  const facts = { version: '1.2.3', epoch: 1, level: 'dev' } as const
  const { steps, bundles } = planParts(facts, ['README.md', 'docs'])
  const before = new Set<string>()
  for (const { name, inputs } of steps) {
    for (const input of inputs) {
      const owner = ownerOf(input)
      assert.ok(owner === null || before.has(owner), `${name}: ${input}`)
    }
    before.add(name)
  }
  assert.equal(
    bundles.flatMap(({ files }) => files.map(({ asset }) => asset)),
    ['flasher-docs-v1.2.3.pdf', 'flasher_lab-1.2.3.tar.gz', 'flasher-lab-1.2.3.tgz'],
  )
  const made = new Set(steps.flatMap(({ name, makes }) => makes.map((file) => `@${name}/${file}`)))
  const read = bundles.flatMap((one) => [
    ...one.files.map(({ from }) => from),
    ...one.packages.map(({ from }) => from),
    ...one.npm,
  ])
  for (const from of read) assert.ok(made.has(from), from)
})

test('the command line', () => {
  assert.equal(readRelease([], '1.2.3'), {
    level: 'release',
    tag: 'v1.2.3',
    buildsImages: true,
    isComplete: false,
    key: null,
    aptKey: null,
    url: null,
    twice: false,
    plan: false,
  })
  const given = ['--sign', 'key', '--complete', '--skip-images', '--tag', 'v1', '--level', 'dev']
  given.push('--url', 'https://ex.com/a', '--apt-key', 'AB12')
  assert.equal(readRelease(given, '1.2.3'), {
    level: 'dev',
    tag: 'v1',
    buildsImages: false,
    isComplete: true,
    key: 'key',
    aptKey: 'AB12',
    url: 'https://ex.com/a',
    twice: false,
    plan: false,
  })
  for (const wrong of [
    ['--tag', '../x'],
    ['--tag', 'latest'],
    ['--sign'],
    ['--apt-key'],
    ['--url', 'ftp://ex.com/a'],
    ['--url', 'releases'],
    ['--url', 'https://me:secret@ex.com/a'],
    ['extra'],
    ['--sing', 'x'],
  ]) {
    assert.throws(
      () => readRelease(wrong, '1.2.3'),
      (error: unknown) => error instanceof UsageError,
      wrong.join(' '),
    )
  }
})

test.run()
