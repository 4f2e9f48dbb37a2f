/** The kinds of settings: what each accepts, and the field that asks for it. */
import { z } from 'zod'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { PUBLIC_KEY } from '#kit/foundation/ssh-signature.ts'
import { parsePasswordHash } from '#kit/foundation/password-hash.ts'
import { parsePublicUrl } from '#kit/net/rules/host-header.ts'
import type { Field, Kind, TomlValue } from './setting.ts'

const NO_LABELS = {} as const

/** A kind whose values TOML holds as they are. */
const plain = <T extends TomlValue>(
  schema: z.ZodType<T>,
  wants: string,
  field: Field,
  fromText: (text: string) => unknown = (text) => text.trim(),
): Kind<T, typeof NO_LABELS> => ({
  schema,
  wants,
  field,
  labels: NO_LABELS,
  fromText,
  toToml: (value) => value,
})

/** A text with an example of what it may be. */
export const textual = (
  schema: z.ZodType<string>,
  wants: string,
  example: string,
  more: Omit<Extract<Field, { as: 'text' }>, 'as' | 'example'> = {},
) => plain(schema, wants, { as: 'text', example, ...more })

export const line = z
  .string()
  .max(4096)
  .regex(/^\P{Cc}*$/u)
const orEmpty = (pattern: RegExp) =>
  line.regex(new RegExp(`^(?:${pattern.source})?$`, pattern.flags))

/** The usual names are suggested; others are possible. */
export const nameLike = (...usual: readonly [string, ...string[]]) =>
  textual(line, 'one line of text', usual[0], { suggest: () => usual })

/** Kept as it is, blanks included: passwords hold them. */
export const secretText = plain(
  line,
  'one line of text',
  { as: 'secret', rows: 1 },
  (given) => given,
)

export const passwordHash = plain(
  line.refine((given) => given.trim() === '' || parsePasswordHash(given).ok),
  'a hash as flasher-web password --print makes it, or an argon2id one',
  { as: 'secret', rows: 1 },
  (given) => given,
)

/** An empty text for none. */
export const path = (example: string) => textual(orEmpty(/\/[^\0]*/), 'an absolute path', example)

/** `owner/name`. */
export const repository = textual(
  orEmpty(/[\w.-]{1,100}\/[\w.-]{1,100}/),
  'owner/name',
  'acme/flasher',
)

/** It ends up in host names. */
export const region = textual(orEmpty(/[a-z0-9-]{1,40}/), 'a region like eu-central-1', 'us-east-1')

/** It ends up in URLs and file names. */
export const tag = textual(
  line.regex(/^[A-Za-z0-9][\w.+-]{0,99}$/),
  'a tag like v1.2.3, or latest',
  'v1.4.0',
  { suggest: () => ['latest'] },
)

/** Where a server listens, or nothing: an address, or a name that stands for one. */
export const hostOrNone = textual(
  orEmpty(/[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?|[0-9A-Fa-f:.]{2,45}/),
  'an address or a host name',
  '192.0.2.10',
)

export const host = { ...hostOrNone, schema: hostOrNone.schema.refine(Boolean) }

/**
 * `http://host[:port][/path]` without credentials, query or fragment, or an empty text for none.
 * Slashes at the end are taken off.
 */
export const baseUrl = (example: string) =>
  textual(
    line
      .refine((given) => given === '' || isBaseUrl(given))
      .transform((given) => given.replace(/\/+$/, '')),
    'an address like http://host:port, without a query or credentials',
    example,
    { keyboard: 'url' },
  )

function isBaseUrl(given: string): boolean {
  const url = URL.parse(given)
  const isWritten = /^https?:\/\/[^\s\\?#@]+$/i.test(given)
  return isWritten && url !== null && url.hostname !== '' && url.username === ''
}

/** `labels` has words for numbers that mean something else, such as `{ 0: 'no limit' }`. */
export const wholeNumber = <
  const Named extends Readonly<Record<string, string>> = typeof NO_LABELS,
>(
  least: number,
  most: number,
  labels?: Named,
) => ({
  ...plain(
    z.int().min(least).max(most),
    `a whole number from ${least} to ${most}`,
    { as: 'number', least, most },
    numberOrText,
  ),
  labels: labels ?? NO_LABELS,
})

export const port = wholeNumber(1, 65_535)

function numberOrText(given: string): unknown {
  const digits = given.trim().replace(/(?<=\d)_(?=\d)/g, '')
  return /^[+-]?\d{1,15}$/.test(digits) ? Number(digits) : given
}

const WORDS = { true: ['true', 'yes', 'on', '1'], false: ['false', 'no', 'off', '0'] }

export const toggle = plain(z.boolean(), 'true or false', { as: 'toggle' }, (given) => {
  const word = given.trim().toLowerCase()
  return WORDS.true.includes(word) || (WORDS.false.includes(word) ? false : given)
})

const namesOf = <Name extends string>(labels: Readonly<Record<Name, string>>): readonly Name[] =>
  Object.keys(labels).filter((name): name is Name => Object.hasOwn(labels, name))

/** `labels`: the words for each name. */
export function choice<const Named extends Readonly<Record<string, string>>>(
  labels: Named,
): Kind<keyof Named & string, Named> {
  const names = namesOf<keyof Named & string>(labels)
  return {
    schema: z.custom<keyof Named & string>((given) => names.some((name) => name === given)),
    wants: `one of ${names.join(', ')}`,
    field: { as: 'choice', names },
    labels,
    fromText: (given) => given.trim().toLowerCase(),
    toToml: (value) => value,
  }
}

/** A list in TOML; in a text, `between` stands between its parts, in a form's field a line break. */
export const listOf = (
  part: z.ZodType<string>,
  {
    most,
    wants,
    example,
  }: { readonly most: number; readonly wants: string; readonly example: string },
  between: RegExp,
): Kind<readonly string[], typeof NO_LABELS> => ({
  ...plain(z.array(part).max(most).readonly(), wants, { as: 'list', example }, (given) =>
    given
      .split(between)
      .map((each) => each.trim())
      .filter(Boolean),
  ),
  toField: (parts) => parts.join('\n'),
})

/** What a `Host` header may hold: names and addresses without a port. */
export const hosts = listOf(
  line.regex(/^[A-Za-z0-9[](?:[A-Za-z0-9.:-]{0,253}[A-Za-z0-9\]])?$/),
  { most: 1000, wants: 'a list of host names and addresses', example: 'flasher.example.org' },
  /[\s,]+/,
)

/** A few addresses that fit into boot scripts beside all else, without slashes at their ends. */
export const serverUrls = listOf(
  line
    .max(80)
    .refine((given) => parsePublicUrl(given).ok)
    .transform((given) => {
      const url = parsePublicUrl(given)
      return url.ok ? url.value : given
    }),
  {
    most: 4,
    wants: 'a list of up to 4 addresses like http://host:port, each of at most 80 characters',
    example: 'http://192.0.2.11:8080',
  },
  /[\s,]+/,
)

export const ranges = listOf(
  z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()]),
  {
    most: 1000,
    wants: 'a list of addresses and ranges like 10.0.0.0/8',
    example: '10.0.0.0/8',
  },
  /[\s,]+/,
)

/** Of IPv4, as whole networks: `192.0.2.0/24`. */
export const networks = listOf(
  z.cidrv4().refine(isNetwork),
  {
    most: 16,
    wants: 'a list of up to 16 networks like 192.0.2.0/24, from /8 to /30',
    example: '192.0.2.0/24',
  },
  /[\s,]+/,
)

function isNetwork(text: string): boolean {
  const [address = '', bits] = text.split('/')
  const number = address.split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0)
  const prefix = Number(bits)
  return prefix >= 8 && prefix <= 30 && number % 2 ** (32 - prefix) === 0
}

/** As `.pub` files have them, which hold blanks. */
export const publicKeys = listOf(
  line.regex(PUBLIC_KEY),
  {
    most: 100,
    wants: 'a list of keys like ssh-ed25519 AAAA… name',
    example: 'ssh-ed25519 AAAA… releases@example.org',
  },
  /[\n,]+/,
)

/** Lengths in seconds; what people write for them is in `SPELLINGS`. */
const UNITS = { s: 1, min: 60, h: 3600, d: 86_400, w: 604_800 } as const

const SPELLINGS: Readonly<Record<string, keyof typeof UNITS>> = {
  '': 's',
  s: 's',
  sec: 's',
  second: 's',
  m: 'min',
  min: 'min',
  minute: 'min',
  h: 'h',
  hr: 'h',
  hour: 'h',
  d: 'd',
  day: 'd',
  w: 'w',
  week: 'w',
}

/** Some 300 years. */
const MAX_SECONDS = 1e10

/**
 * Seconds: a number, or numbers with units (`90s`, `5 min`, `1h 30m`, `7 days`); `never` is
 * Infinity. Files get the short form (`15m`), fields the one for people (`15 min`).
 */
export const duration: Kind<number, typeof NO_LABELS> = {
  schema: z.union([
    // What is in effect is checked as well, and is a number already.
    z.custom<number>((given) => given === Infinity),
    z.int().min(0).max(MAX_SECONDS),
    z
      .string()
      .transform(parseDuration)
      .refine((seconds) => seconds === Infinity || (seconds >= 0 && seconds <= MAX_SECONDS)),
  ]),
  wants: 'seconds, a span like 90s, 15m, 24h or 7d, or never',
  field: { as: 'duration', least: 0 },
  labels: NO_LABELS,
  fromText: numberOrText,
  toToml: (seconds) => renderDuration(seconds).replace(' ', '').replace('min', 'm'),
  toField: renderDuration,
}

/** A span of a minute at least: each time that it ends, another server is asked. */
export const longDuration: Kind<number, typeof NO_LABELS> = {
  ...duration,
  schema: duration.schema.refine((seconds) => seconds >= 60),
  wants: 'a span of at least 1m, like 24h or 7d, or never',
  field: { as: 'duration', least: 60 },
}

/** A span for which services of buckets sign addresses. */
export const signedSpan: typeof duration = {
  ...duration,
  schema: duration.schema.refine((seconds) => seconds >= 60 && seconds <= 604_800),
  wants: 'a span from 1m to 7d, like 6h',
  field: { as: 'duration', least: 60 },
}

const PART = /(\d+)\s*([a-z]*)/g

function parseDuration(given: string): number {
  const words = given.trim().toLowerCase()
  if (words === 'never') return Infinity
  if (words === '' || words.length > 40 || words.replace(PART, '').trim() !== '') return Number.NaN
  const parts = [...words.matchAll(PART)].map(([, count = '', word = '']) => {
    // Words have a plural, letters have none: `ms` are no minutes.
    const unit = SPELLINGS[word.length > 2 ? word.replace(/s$/, '') : word]
    // Seconds need no unit where nothing else is said.
    return unit === undefined || (word === '' && count !== words)
      ? Number.NaN
      : Number(count) * UNITS[unit]
  })
  return parts.reduce((sum, part) => sum + part, 0)
}

/** In the longest unit that is exact: 24 hours are `1 d`, Infinity is `never`. */
export function renderDuration(seconds: number): string {
  if (seconds === Infinity) return 'never'
  const [unit, length] =
    Object.entries(UNITS).findLast(([, each]) => seconds > 0 && seconds % each === 0) ??
    (['s', 1] as const)
  return `${seconds / length} ${unit}`
}

/** By powers: of 1000 (`kB`), of 1024 (`KiB`). */
const PREFIXES = 'kmgt'

/** Bytes: a number, or a number with a unit (`200 GiB`, `1.5 TB`). */
export const bytes: Kind<number, typeof NO_LABELS> = {
  schema: z.union([z.int().min(0), z.string().transform(parseBytes).pipe(z.int().min(0))]),
  wants: 'bytes, or a size like 200 GiB',
  field: { as: 'size' },
  labels: NO_LABELS,
  fromText: numberOrText,
  toToml: renderExactBytes,
}

/** With words for sizes that mean something else: `{ 0: 'no limit' }`. */
export const bytesOr = <const Named extends Readonly<Record<string, string>>>(labels: Named) => ({
  ...bytes,
  labels,
})

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
export const timeZone = textual(
  line.refine(isTimeZone),
  'a time zone like Europe/Copenhagen, or UTC',
  'Europe/Copenhagen',
  { suggest: () => ['UTC', ...Intl.supportedValuesOf('timeZone')] },
)

function isTimeZone(given: string): boolean {
  try {
    return Intl.DateTimeFormat('en', { timeZone: given }).resolvedOptions().timeZone !== ''
  } catch {
    return false // The only way in which Intl reports that it does not know one.
  }
}

/** A table of names and simple values; JSON in a text. */
export const options = plain<Readonly<Record<string, string | number | boolean>>>(
  z.record(z.string().max(100), z.union([line, z.number(), z.boolean()])).readonly(),
  'a table of texts, numbers and switches',
  { as: 'secret', rows: 4 },
  // What is not JSON is refused by the schema, with what is wanted.
  (given) => parseJson(given) ?? given,
)

/** What a machine may be near to: its address, its network, or one of its labels. */
const nearSite = z.union([
  z.ipv4(),
  z.ipv6(),
  z.cidrv4(),
  z.cidrv6(),
  z.string().regex(/^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$/),
])

/** Each with the networks and labels of the machines that are near it. */
export const siteCaches = listOf(
  line.refine((given) => {
    const [base = '', ...rest] = given.split(' ')
    const sites = rest.join(' ')
    const isSited =
      sites === '' || sites.split(';').every((each) => nearSite.safeParse(each.trim()).success)
    return isBaseUrl(base) && isSited
  }),
  {
    most: 100,
    wants:
      'a list of caches, each with its networks and labels, like http://10.1.0.5:8081 10.1.0.0/24; rack a',
    example: 'http://10.1.0.5:8081 10.1.0.0/24; rack a',
  },
  /[\n,]+/,
)
