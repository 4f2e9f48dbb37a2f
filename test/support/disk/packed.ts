/** The npm tarball, packed and laid into an empty project as an installer would, without any network. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

const execute = promisify(execFile)

export interface PackedProject extends AsyncDisposable {
  readonly path: string
  /** What the tarball holds, without its first folder. */
  readonly files: readonly string[]
}

export const PACKAGE = 'flasher-lab'

/** Its dependencies are links to this checkout's own; nothing else can be found from there. */
export async function installPacked(): Promise<PackedProject> {
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
