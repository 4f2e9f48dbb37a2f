/** The limits that pages quote, and where the code has them, as `limits.toml` lists them. */
import { readFileSync } from 'node:fs'
import { parse } from 'smol-toml'
import { z } from 'zod'
import { SETTINGS } from '../../../runtime/server/current/rules/settings.ts'
import { numberIn } from './constants.ts'

export interface Limit {
  readonly page: string
  /** A piece of the page in which each `{}` stands for a number, in digits or in a word; a blank stands for any. */
  readonly says: string
  /** What the code has, in the unit of the page, in this order. */
  readonly are: () => readonly number[]
}

const UNITS: Readonly<Record<string, number>> = { KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 }

const schema = z.record(z.string(), z.record(z.string(), z.string()))

const rows = schema.parse(parse(readFileSync('test/support/documents/limits.toml', 'utf8')))

export const LIMITS: readonly Limit[] = Object.entries(rows).flatMap(([page, limits]) =>
  Object.entries(limits).map(([says, source]) => ({
    page,
    says,
    are: () => source.split(' ; ').map(valueOf),
  })),
)

/** @throws {Error} Nothing has what the row names. */
function valueOf(source: string): number {
  const [, what = source, per = '1'] = /^(.+) \/ ([\w.]+)$/.exec(source) ?? []
  return readNumber(what) / (UNITS[per] ?? Number(per.replaceAll('_', '')))
}

function readNumber(what: string): number {
  const [file = '', pattern] = what.split(' ~ ')
  if (pattern !== undefined) return findNumber(file, pattern)
  const [where = '', name = ''] = what.split(' ')
  return where === 'setting' ? readDefault(name) : numberIn(where, name)
}

function findNumber(file: string, pattern: string): number {
  const [, found] = new RegExp(pattern, 'm').exec(readFileSync(file, 'utf8')) ?? []
  if (found === undefined) throw new Error(`${file} has nothing like ${pattern}`)
  return Number(found.replaceAll('_', ''))
}

const setting = z.object({ fallback: z.union([z.number(), z.string()]) })

function readDefault(name: string): number {
  const [section = '', key = ''] = name.split('.')
  const rowsOf = z.record(z.string(), z.record(z.string(), z.unknown())).parse(SETTINGS)
  const value = Number(setting.parse(rowsOf[section]?.[key]).fallback)
  if (Number.isNaN(value)) throw new Error(`${name} has no number as its default`)
  return value
}
