/** The types of settings: texts, numbers, addresses, durations, lists. */
import { z } from 'zod'
import { parseJson } from '../../foundation/json-reader.ts'
import { PUBLIC_KEY } from '../../foundation/ssh-signature.ts'
import { parsePasswordHash } from '../../foundation/password-hash.ts'
import type { Kind, TomlValue } from './setting.ts'

/** A kind whose values TOML holds as they are. */
const plain = <T extends TomlValue>(
  schema: z.ZodType<T>,
  wants: string,
  fromText: (text: string) => unknown = (text) => text.trim(),
): Kind<T> => ({ schema, wants, fromText, toToml: (value) => value })

const line = z
  .string()
  .max(4096)
  .regex(/^\P{Cc}*$/u)
const orEmpty = (pattern: RegExp) =>
  line.regex(new RegExp(`^(?:${pattern.source})?$`, pattern.flags))

export const text = plain(line, 'one line of text')

/** Kept as it is, blanks included: passwords hold them. */
export const secretText = plain(line, 'one line of text', (given) => given)

export const passwordHash = plain(
  line.refine((given) => given.trim() === '' || parsePasswordHash(given).ok),
  'a hash as flasher-web password --print makes it, or an argon2id one',
  (given) => given,
)

export const path = plain(orEmpty(/\/[^\0]*/), 'an absolute path')

/** `owner/name`. */
export const repository = plain(orEmpty(/[\w.-]{1,100}\/[\w.-]{1,100}/), 'owner/name')

/** A release's tag, which ends up in URLs and file names. */
export const tag = plain(line.regex(/^[A-Za-z0-9][\w.+-]{0,99}$/), 'a tag like v1.2.3, or latest')

/** Where a server listens, or nothing: an address, or a name that stands for one. */
export const hostOrNone = plain(
  orEmpty(/[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?|[0-9A-Fa-f:.]{2,45}/),
  'an address or a host name',
)

export const host: Kind<string> = { ...hostOrNone, schema: hostOrNone.schema.refine(Boolean) }

/** `http://host[:port][/path]`, without credentials, query or fragment; empty: none. */
export const baseUrl = plain(
  line
    .refine((given) => given === '' || isBaseUrl(given))
    .transform((given) => given.replace(/\/+$/, '')),
  'an address like http://host:port, without a query or credentials',
)

function isBaseUrl(given: string): boolean {
  const url = URL.parse(given)
  const isWritten = /^https?:\/\/[^\s\\?#@]+$/i.test(given)
  return isWritten && url !== null && url.hostname !== '' && url.username === ''
}

export const wholeNumber = (least: number, most: number): Kind<number> =>
  plain(z.int().min(least).max(most), `a whole number from ${least} to ${most}`, numberOrText)

export const port: Kind<number> = wholeNumber(1, 65_535)

function numberOrText(given: string): unknown {
  const digits = given.trim().replace(/(?<=\d)_(?=\d)/g, '')
  return /^[+-]?\d{1,15}$/.test(digits) ? Number(digits) : given
}

const WORDS = { true: ['true', 'yes', 'on', '1'], false: ['false', 'no', 'off', '0'] }

export const toggle: Kind<boolean> = plain(z.boolean(), 'true or false', (given) => {
  const word = given.trim().toLowerCase()
  return WORDS.true.includes(word) || (WORDS.false.includes(word) ? false : given)
})

export const choice = <const Names extends readonly [string, ...string[]]>(
  names: Names,
): Kind<Names[number]> =>
  plain(z.enum(names), `one of ${names.join(', ')}`, (given) => given.trim().toLowerCase())

/** A list in TOML, commas or blanks between its parts in a text. */
const listOf = (part: z.ZodType<string>, wants: string): Kind<readonly string[]> =>
  plain(z.array(part).max(1000).readonly(), wants, (given) => given.split(/[\s,]+/).filter(Boolean))

/** What a `Host` header may hold: names and addresses without a port. */
export const hosts = listOf(
  line.regex(/^[A-Za-z0-9[](?:[A-Za-z0-9.:-]{0,253}[A-Za-z0-9\]])?$/),
  'a list of host names and addresses',
)

/** Addresses and CIDR ranges. */
export const ranges = listOf(
  z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()]),
  'a list of addresses and ranges like 10.0.0.0/8',
)

/** As `.pub` files have them; commas between them in a text. */
export const publicKeys: Kind<readonly string[]> = plain(
  z.array(line.regex(PUBLIC_KEY)).max(100).readonly(),
  'a list of keys like ssh-ed25519 AAAA… name',
  (given) =>
    given
      .split(',')
      .map((key) => key.trim())
      .filter(Boolean),
)

const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 }

/** Some 300 years. */
const MAX_SECONDS = 1e10

/**
 * Seconds: a number, or a number with a unit (`90s`, `15m`, `24h`, `7d`, `2w`); `never` is Infinity.
 */
export const duration: Kind<number> = {
  schema: z.union([
    z.int().min(0).max(MAX_SECONDS),
    z
      .string()
      .transform(parseDuration)
      .refine((seconds) => seconds === Infinity || (seconds >= 0 && seconds <= MAX_SECONDS)),
  ]),
  wants: 'seconds, a span like 90s, 15m, 24h or 7d, or never',
  fromText: numberOrText,
  toToml: renderDuration,
}

/** A span of a minute at least: each time that it ends, another server is asked. */
export const longDuration: Kind<number> = {
  ...duration,
  // The default is checked as well, and is a number already.
  schema: z.union([
    z.custom<number>((given) => given === Infinity),
    duration.schema.refine((seconds) => seconds >= 60),
  ]),
  wants: 'a span of at least 1m, like 24h or 7d, or never',
}

function parseDuration(given: string): number {
  const word = given.trim().toLowerCase()
  if (word === 'never') return Infinity
  const [, count = '', unit = 's'] = /^(\d{1,10})\s*([smhdw])?$/.exec(word) ?? []
  return count === '' ? Number.NaN : Number(count) * (UNITS[unit] ?? Number.NaN)
}

/** In the longest unit that is exact: `24h` is `1d`. */
function renderDuration(seconds: number): string {
  if (seconds === Infinity) return 'never'
  if (seconds === 0) return '0s'
  const [unit, length] =
    Object.entries(UNITS).findLast(([, each]) => seconds % each === 0) ?? (['s', 1] as const)
  return `${seconds / length}${unit}`
}

/** By powers: of 1000 (`kB`), of 1024 (`KiB`). */
const PREFIXES = 'kmgt'

/** Bytes: a number, or a number with a unit (`200 GiB`, `1.5 TB`). */
export const bytes: Kind<number> = {
  schema: z.union([z.int().min(0), z.string().transform(parseBytes).pipe(z.int().min(0))]),
  wants: 'bytes, or a size like 200 GiB',
  fromText: numberOrText,
  toToml: renderExactBytes,
}

function parseBytes(given: string): number {
  const [, count, prefix = '', binary] =
    /^(\d{1,15}(?:\.\d{1,6})?)\s*(?:([kmgt])(i?)b|b)?$/.exec(given.trim().toLowerCase()) ?? []
  const power = prefix === '' ? 0 : PREFIXES.indexOf(prefix) + 1
  return count === undefined
    ? Number.NaN
    : Math.round(Number(count) * (binary ? 1024 : 1000) ** power)
}

/** In the largest unit that is exact: `200 GiB`, `1500 MB`; below 1000 it stays a number. */
function renderExactBytes(count: number): number | string {
  const units = [1024, 1000].flatMap((base) =>
    [...PREFIXES].map((prefix, at) => ({
      name:
        base === 1024 ? `${prefix.toUpperCase()}iB` : `${at === 0 ? 'k' : prefix.toUpperCase()}B`,
      size: base ** (at + 1),
    })),
  )
  const exact = units.filter(({ size }) => count > 0 && count % size === 0)
  const [largest] = exact.toSorted((one, two) => two.size - one.size)
  return largest === undefined ? count : `${count / largest.size} ${largest.name}`
}

/** An IANA name; the runtime's own list decides. */
export const timeZone = plain(line.refine(isTimeZone), 'a time zone like Europe/Copenhagen, or UTC')

function isTimeZone(given: string): boolean {
  try {
    return Intl.DateTimeFormat('en', { timeZone: given }).resolvedOptions().timeZone !== ''
  } catch {
    return false // The only way in which Intl reports that it does not know one.
  }
}

/** A table of names and simple values; JSON in a text. */
export const options: Kind<Readonly<Record<string, string | number | boolean>>> = plain(
  z.record(z.string().max(100), z.union([line, z.number(), z.boolean()])).readonly(),
  'a table of texts, numbers and switches',
  // What is not JSON is refused by the schema, with what is wanted.
  (given) => parseJson(given) ?? given,
)
