/** Reads the package lists that steps write beside their outcomes. */
import { readFile } from 'node:fs/promises'
import process from 'node:process'
import type { Contents, DebianPackage, NpmPackage, Program } from './contents.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'

interface ListFiles {
  readonly packages: readonly {
    readonly title: string
    readonly within: boolean
    readonly from: string
  }[]
  readonly npm: readonly string[]
  readonly programs: readonly string[]
}

/** Reads all lists; `pathOf` locates a step's file. Rejects when a list is empty or malformed. */
export async function readContents(
  { packages, npm, programs }: ListFiles,
  pathOf: (token: string) => string,
): Promise<Contents> {
  const debian = await Promise.all(
    packages.map(async ({ title, within, from }) => ({
      title,
      within,
      packages: (await readRows(pathOf(from), DEBIAN)).map(asDebian),
    })),
  )
  const lists = await Promise.all(npm.map((from) => readRows(pathOf(from), NPM)))
  const others = await Promise.all(programs.map((from) => readRows(pathOf(from), PROGRAM)))
  return {
    debian,
    npm: lists.flat().map(asNpm),
    programs: [...others.flat().map(asProgram), BUILDER],
  }
}

/** Node runs our own programs, and its compressor decides bytes. */
const BUILDER: Program = { name: 'node', version: process.versions.node, within: false }

type Row = Readonly<Record<string, string>>

const DEBIAN = ['name', 'version', 'architecture'] as const
const NPM = ['name', 'version', 'license'] as const
const PROGRAM = ['name', 'version'] as const

const asDebian = ({ name = '', version = '', architecture = '' }: Row): DebianPackage => ({
  name,
  version,
  architecture,
})
const asNpm = ({ name = '', version = '', license = '' }: Row): NpmPackage => ({
  name,
  version,
  license,
})
const asProgram = ({ name = '', version = '' }: Row): Program => ({ name, version, within: true })

async function readRows(path: string, fields: readonly string[]): Promise<readonly Row[]> {
  const value = parseJson(await readFile(path, 'utf8'))
  if (!Array.isArray(value) || value.length === 0) {
    throw new Error(`${path} holds no list of packages`)
  }
  return value.map((row: unknown) => {
    const given = typeof row === 'object' && row !== null ? Object.entries(row) : []
    const texts = given.filter((pair): pair is [string, string] => typeof pair[1] === 'string')
    const whole = Object.fromEntries(texts)
    if (fields.some((field) => whole[field] === undefined)) {
      throw new Error(`${path} has a row without ${fields.join(', ')}`)
    }
    return whole
  })
}
