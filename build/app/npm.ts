/** Finds the npm packages that programs import at run time, as Node resolves them. */
import { readFile, realpath } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseJson } from '#kit/foundation/json-reader.ts'

interface NpmPackage {
  readonly name: string
  readonly version: string
  readonly license: string
  readonly folder: string
  /** Where it belongs below `node_modules`: its name, unless another version has that place. */
  readonly place: string
}

/**
 * Lists `names` and all their dependencies, sorted by place. Of two versions of one package the
 * second one lies below the package that needs it, where Node looks first. Rejects when one is not
 * installed.
 */
export async function listPackages(
  names: readonly string[],
  checkout: string,
): Promise<readonly NpmPackage[]> {
  const found = new Map<string, NpmPackage>()
  const root = { place: '', from: join(checkout, 'package.json') }
  const wanted = names.map((name) => ({ name, ...root }))
  for (const { name, from, place: dependent } of wanted) {
    const folder = await findPackage(name, dirname(from))
    const { version, license, needs } = await readPackage(folder)
    const known = [name, join(dependent, 'node_modules', name)].map((place) => found.get(place))
    if (known.some((each) => each?.version === version)) continue
    const place = known[0] === undefined ? name : join(dependent, 'node_modules', name)
    found.set(place, { name, version, license, folder, place })
    const next = { place, from: join(folder, 'package.json') }
    wanted.push(...needs.map((need) => ({ name: need, ...next })))
  }
  return [...found.values()].toSorted((a, b) => (a.place < b.place ? -1 : 1))
}

async function findPackage(name: string, folder: string): Promise<string> {
  const place = join(folder, 'node_modules', name)
  if (existsSync(place)) return await realpath(place)
  const above = dirname(folder)
  if (above === folder) throw new Error(`the package ${name} is not installed`)
  return await findPackage(name, above)
}

async function readPackage(folder: string) {
  const about = parseJson(await readFile(join(folder, 'package.json'), 'utf8'))
  if (!isRecord(about)) throw new Error(`${folder} has a package.json that is not a JSON object`)
  const { version, license, dependencies } = about
  return {
    version: typeof version === 'string' ? version : '0',
    license: typeof license === 'string' ? license : 'NOASSERTION',
    needs: isRecord(dependencies) ? Object.keys(dependencies) : [],
  }
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null
