/** Recipes of other package managers, as a release has them and as their own programs read them. */
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  mkdirSync,
  mkdtempDisposableSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { debFile, RECIPES } from '#appliance/assets.ts'
import { renderRecipes } from '#build/release/recipes.ts'
import { makeReleaseFolder } from '#test/support/release-folder.ts'

const URL = 'https://host/owner/name/releases/download/v1.2.3'
const NAMES = Object.values(RECIPES)

const test = suite('recipes')
const has = (program: string) => spawnSync(program, ['--version']).error === undefined
const where = (program: string) => (has(program) ? test : test.skip)

const DEBS = (['x86_64', 'arm64'] as const).map((arch) => debFile(arch, '1.2.3'))
const FILES = DEBS.map((name, at) => ({ name, bytes: 1, digest: `${at}`.repeat(64) }))

/** The recipes in a folder that everybody may write: makepkg refuses to run as root. */
function openRecipes() {
  const folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-recipes-'))
  chmodSync(folder.path, 0o777)
  for (const { name, text } of renderRecipes({ version: '1.2.3', url: URL, files: FILES })) {
    writeFileSync(join(folder.path, name), text)
  }
  return {
    at: (name: string) => join(folder.path, name),
    [Symbol.dispose]: () => folder.remove(),
  }
}

test('each names the packages of the release, their digests and its version', async () => {
  await using release = await makeReleaseFolder({ line: 'current', url: URL })
  for (const name of NAMES) {
    const text = String(await release.read(name))
    for (const deb of DEBS) {
      assert.match(text, `${URL}/${deb}`)
      assert.match(text, release.files.find((file) => file.name === deb)?.digest ?? '?')
    }
  }
})

test('a release without a Debian package or without an address has none', async () => {
  assert.equal(renderRecipes({ version: '1.2.3', url: URL, files: [] }), [])
  await using release = await makeReleaseFolder({ line: 'current' })
  assert.equal(
    release.files.filter(({ name }) => NAMES.some((one) => one === name)),
    [],
  )
  await using earlier = await makeReleaseFolder({ line: 'earlier', url: URL })
  assert.not(earlier.files.some(({ name }) => NAMES.some((one) => one === name)))
})

test('an address that would have to be quoted is refused', () => {
  const facts = { version: '1.2.3', url: "https://host/it's", files: [] }
  assert.throws(() => renderRecipes(facts), /without special characters/)
})

where('shellcheck')('ShellCheck finds nothing in the PKGBUILD but what makepkg reads', () => {
  using recipes = openRecipes()
  // Unused, not assigned: makepkg reads and sets them.
  const rest = ['-s', 'bash', '-e', 'SC2034,SC2154', recipes.at(RECIPES.arch)]
  assert.is(spawnSync('shellcheck', rest, { encoding: 'utf8' }).stdout, '')
})

/** The user nobody, where we are root. */
const runAsNobody = (cwd: string, argv: readonly string[]) => {
  const drop = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']
  const [program = '', ...rest] = [...(process.getuid?.() === 0 ? drop : []), ...argv]
  const env = { ...process.env, HOME: cwd, PKGEXT: '.pkg.tar' }
  return execFileSync(program, rest, {
    cwd,
    encoding: 'utf8',
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

where('makepkg')('makepkg reads the PKGBUILD', () => {
  using recipes = openRecipes()
  const cwd = dirname(recipes.at(RECIPES.arch))
  const said = runAsNobody(cwd, ['makepkg', '--printsrcinfo'])
  assert.match(said, /pkgbase = flasher-bin\n/)
  assert.match(said, `source_aarch64 = ${URL}/${DEBS[1]}`)
  assert.match(said, `sha256sums_x86_64 = ${FILES[0]?.digest}`)
})

/** A package with the layout of ours and a program of one line. */
function makeDeb(folder: string, name: string): string {
  const root = join(folder, 'root')
  const files: Readonly<Record<string, string>> = {
    'DEBIAN/control':
      'Package: flasher\nVersion: 1.2.3\nArchitecture: amd64\nMaintainer: test <test@localhost>\nDescription: test\n',
    'usr/lib/flasher/service/start': '#!/bin/sh\necho "${0##*/}"\n',
    'usr/share/doc/flasher/copyright': 'Apache-2.0\n',
    'usr/share/man/man1/flasher.1': '.TH flasher 1\n',
  }
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text, { mode: path.endsWith('start') ? 0o755 : 0o644 })
  }
  mkdirSync(join(root, 'usr/bin'))
  symlinkSync('../lib/flasher/service/start', join(root, 'usr/bin/flasher'))
  const deb = join(folder, name)
  execFileSync('dpkg-deb', ['-Zzstd', '--root-owner-group', '--build', root, deb])
  rmSync(root, { recursive: true })
  return createHash('sha256').update(readFileSync(deb)).digest('hex')
}

const makesPackages =
  process.arch === 'x64' && ['makepkg', 'fakeroot', 'bsdtar', 'dpkg-deb'].every(has)
const whereMade = makesPackages ? test : test.skip
whereMade('makepkg makes a package of it whose programs start, and refuses another file', () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-makepkg-'))
  chmodSync(folder.path, 0o777)
  const name = debFile('x86_64', '1.2.3')
  const digest = makeDeb(folder.path, name)
  const write = (of: string) => {
    const files = [{ name, bytes: 1, digest: of }]
    const [recipe] = renderRecipes({ version: '1.2.3', url: URL, files })
    writeFileSync(join(folder.path, RECIPES.arch), recipe?.text ?? '')
  }
  const argv = ['makepkg', '--nodeps', '--force']
  write('0'.repeat(64))
  assert.throws(() => runAsNobody(folder.path, argv), /did not pass the validity check/)
  write(digest)
  runAsNobody(folder.path, argv)
  const made = readdirSync(folder.path).find((file) => file.startsWith('flasher-bin-1.2.3-1-'))
  const to = join(folder.path, 'to')
  mkdirSync(to)
  execFileSync('tar', ['-xf', join(folder.path, made ?? '?'), '-C', to])
  for (const program of ['flasher', 'flasher-tui', 'flasher-web', 'flasher-cache']) {
    const said = execFileSync(join(to, 'usr/bin', program), { encoding: 'utf8' })
    assert.is(said, `${program}\n`)
  }
})

where('ruby')(
  'Ruby reads the formula, and RuboCop finds no mistake where it is installed',
  async () => {
    using recipes = await openRecipes()
    const path = recipes.at(RECIPES.homebrew)
    assert.is(execFileSync('ruby', ['-c', path], { encoding: 'utf8' }), 'Syntax OK\n')
    if (!has('rubocop')) return
    const argv = ['--only', 'Lint', '--cache', 'false', path]
    const { status, stdout } = spawnSync('rubocop', argv, { encoding: 'utf8' })
    assert.is(status, 0, stdout)
  },
)

where('nix-instantiate')('Nix reads its expression', () => {
  using recipes = openRecipes()
  const { status, stderr } = spawnSync('nix-instantiate', ['--parse', recipes.at(RECIPES.nix)], {
    encoding: 'utf8',
  })
  assert.is(status, 0, stderr)
})

test.run()
