/** The sorts of values that settings hold: texts, numbers, addresses, spans of time, lists. */
import { z } from 'zod'
import { parseJson } from '../foundation/json-reader.ts'
import { parsePasswordHash } from '../access/password-hash.ts'
import type { Kind, TomlValue } from './setting.ts'

const same = <T extends TomlValue>(value: T): TomlValue => value
const trimmed = (text: string) => text.trim()

const asText = (schema: z.ZodType<string>, wants: string): Kind<string> => ({
  schema,
  wants,
  fromText: trimmed,
  toToml: same,
})

const line = z
  .string()
  .max(4096)
  .regex(/^\P{Cc}*$/u)
const orEmpty = (pattern: RegExp) =>
  line.regex(new RegExp(`^(?:${pattern.source})?$`, pattern.flags))

export const text = asText(line, 'one line of text')

/** Kept as it is, blanks included: passwords hold them. */
export const secretText: Kind<string> = {
  ...text,
  wants: 'one line of text',
  fromText: (given) => given,
}

export const passwordHash: Kind<string> = {
  ...secretText,
  schema: line.refine((given) => given.trim() === '' || parsePasswordHash(given).ok),
  wants: 'a hash as flasher-web password --print makes it, or an argon2id one',
}

export const path = asText(orEmpty(/\/[^\0]*/), 'an absolute path')

/** `owner/name`. */
export const repository = asText(orEmpty(/[\w.-]{1,100}\/[\w.-]{1,100}/), 'owner/name')

/** A release's tag, which ends up in URLs and file names. */
export const tag = asText(line.regex(/^[A-Za-z0-9][\w.+-]{0,99}$/), 'a tag like v1.2.3, or latest')

/** Where a server listens: an address, or a name that stands for one. */
export const host = asText(
  line.regex(/^(?:[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?|[0-9A-Fa-f:.]{2,45})$/),
  'an address or a host name',
)

/** As `host`, or nothing. */
export const hostOrNone = asText(
  orEmpty(/[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?|[0-9A-Fa-f:.]{2,45}/),
  'an address or a host name',
)

/** `http://host[:port][/path]`, without credentials, query or fragment; empty: none. */
export const baseUrl: Kind<string> = {
  schema: line
    .refine((given) => given === '' || isBaseUrl(given))
    .transform((given) => given.replace(/\/+$/, '')),
  wants: 'an address like http://host:port, without a query or credentials',
  fromText: trimmed,
  toToml: same,
}

function isBaseUrl(given: string): boolean {
  const url = URL.parse(given)
  return (
    /^https?:\/\/[^\s\\?#@]+$/i.test(given) &&
    url !== null &&
    url.hostname !== '' &&
    url.username === ''
  )
}

export const wholeNumber = (least: number, most: number): Kind<number> => ({
  schema: z.int().min(least).max(most),
  wants: `a whole number from ${least} to ${most}`,
  fromText: numberOrText,
  toToml: same,
})

export const port: Kind<number> = wholeNumber(1, 65_535)

function numberOrText(given: string): unknown {
  const digits = given.trim().replace(/(?<=\d)_(?=\d)/g, '')
  return /^[+-]?\d{1,15}$/.test(digits) ? Number(digits) : given
}

const SWITCH = new Map([
  ['true', true],
  ['yes', true],
  ['on', true],
  ['1', true],
  ['false', false],
  ['no', false],
  ['off', false],
  ['0', false],
])

export const toggle: Kind<boolean> = {
  schema: z.boolean(),
  wants: 'true or false',
  fromText: (given) => SWITCH.get(given.trim().toLowerCase()) ?? given,
  toToml: same,
}

export const choice = <const Names extends readonly [string, ...string[]]>(
  names: Names,
): Kind<Names[number]> => ({
  schema: z.enum(names),
  wants: `one of ${names.join(', ')}`,
  fromText: (given) => given.trim().toLowerCase(),
  toToml: same,
})

/** A list in TOML, commas or blanks between its parts in a text. */
const listOf = (part: z.ZodType<string>, wants: string): Kind<readonly string[]> => ({
  schema: z.array(part).max(1000).readonly(),
  wants,
  fromText: (given) => given.split(/[\s,]+/).filter(Boolean),
  toToml: (values) => [...values],
})

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

const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 }

/** Some 300 years. */
const LONGEST_SECONDS = 1e10

/**
 * Seconds: a number, or a number with a unit (`90s`, `15m`, `24h`, `7d`, `2w`); `never` is Infinity.
 */
export const duration: Kind<number> = {
  schema: z.union([
    z.int().min(0).max(LONGEST_SECONDS),
    z
      .string()
      .transform(parseDuration)
      .refine((seconds) => seconds === Infinity || (seconds >= 0 && seconds <= LONGEST_SECONDS)),
  ]),
  wants: 'seconds, a span like 90s, 15m, 24h or 7d, or never',
  fromText: numberOrText,
  toToml: (seconds) => renderDuration(seconds),
}

function parseDuration(given: string): number {
  const word = given.trim().toLowerCase()
  if (word === 'never') return Infinity
  const [, count = '', unit = 's'] = /^(\d{1,10})\s*([smhdw])?$/.exec(word) ?? []
  return count === '' ? Number.NaN : Number(count) * (UNITS[unit] ?? Number.NaN)
}

/** The longest unit that says it exactly: `24h` is `1d`. */
function renderDuration(seconds: number): string {
  if (seconds === Infinity) return 'never'
  if (seconds === 0) return '0s'
  const [unit, length] =
    Object.entries(UNITS).findLast(([, each]) => seconds % each === 0) ?? (['s', 1] as const)
  return `${seconds / length}${unit}`
}

const BYTES: Readonly<Record<string, number>> = {
  '': 1,
  b: 1,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
  kib: 2 ** 10,
  mib: 2 ** 20,
  gib: 2 ** 30,
  tib: 2 ** 40,
}

/** Bytes: a number, or a number with a unit (`200 GiB`, `1.5 TB`). */
export const bytes: Kind<number> = {
  schema: z.union([z.int().min(0), z.string().transform(parseBytes).pipe(z.int().min(0))]),
  wants: 'bytes, or a size like 200 GiB',
  fromText: numberOrText,
  toToml: same,
}

function parseBytes(given: string): number {
  const [, count = '', unit = ''] =
    /^(\d{1,15}(?:\.\d{1,6})?)\s*([a-z]*)$/i.exec(given.trim()) ?? []
  const each = BYTES[unit.toLowerCase()]
  return count === '' || each === undefined ? Number.NaN : Math.round(Number(count) * each)
}

/** An IANA name; the runtime's own list decides. */
export const timeZone = asText(
  line.refine(isTimeZone),
  'a time zone like Europe/Copenhagen, or UTC',
)

function isTimeZone(given: string): boolean {
  try {
    return Intl.DateTimeFormat('en', { timeZone: given }).resolvedOptions().timeZone !== ''
  } catch {
    return false // The only way in which Intl says that it does not know one.
  }
}

const optionValue = z.union([line, z.number(), z.boolean()])

/** What is no JSON is refused by the schema, with what is wanted. */
const parseOptions = (given: string): unknown => parseJson(given) ?? given

/** A table of names and simple values; JSON in a text. */
export const options: Kind<Readonly<Record<string, string | number | boolean>>> = {
  schema: z.record(z.string().max(100), optionValue).readonly(),
  wants: 'a table of texts, numbers and switches',
  fromText: parseOptions,
  toToml: (values) => ({ ...values }),
}
