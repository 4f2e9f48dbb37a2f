/** Finds the npm packages that programs import at run time, as Node resolves them. */
import { readFile, realpath } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'

interface NpmPackage {
  readonly name: string
  readonly version: string
  readonly license: string
  readonly folder: string
}

/**
 * `names` and all their dependencies, sorted by name. Throws when two versions of one package are
 * required: the live system holds one version of each.
 */
export async function listPackages(
  names: readonly string[],
  checkout: string,
): Promise<readonly NpmPackage[]> {
  const found = new Map<string, NpmPackage>()
  const wanted = names.map((name) => ({ name, from: join(checkout, 'package.json') }))
  for (const { name, from } of wanted) {
    const folder = await findPackage(name, dirname(from))
    const { version, license, needs } = await readPackage(folder)
    const known = found.get(name)
    if (known === undefined) {
      found.set(name, { name, version, license, folder })
      wanted.push(...needs.map((need) => ({ name: need, from: join(folder, 'package.json') })))
    } else if (known.version !== version) {
      throw new Error(`${name} is needed as ${known.version} and as ${version}`)
    }
  }
  return [...found.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

async function findPackage(name: string, folder: string): Promise<string> {
  const place = join(folder, 'node_modules', name)
  if (existsSync(place)) return await realpath(place)
  const above = dirname(folder)
  if (above === folder) throw new Error(`the package ${name} is not installed`)
  return await findPackage(name, above)
}

async function readPackage(folder: string) {
  const about: unknown = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
  const record = isRecord(about) ? about : {}
  const { version, license, dependencies } = record
  return {
    version: typeof version === 'string' ? version : '0',
    license: typeof license === 'string' ? license : 'NOASSERTION',
    needs: isRecord(dependencies) ? Object.keys(dependencies) : [],
  }
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null
