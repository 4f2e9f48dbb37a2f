/** Normalizes MAC addresses to the form that we store: lower case, with colons. */
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { z } from 'zod'

declare const brand: unique symbol
export type Mac = string & { readonly [brand]: 'Mac' }

/** Parses six pairs of hexadecimal digits, any case, with `:` or `-` between them; null: it is none. */
export function readPairs(text: string): Mac | null {
  const mac = text.toLowerCase().replaceAll('-', ':')
  return /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/.test(mac) ? (mac as Mac) : null
}

export function parseMac(text: string): Result<Mac, 'not-a-mac'> {
  const mac = readPairs(text)
  return mac === null ? refuse('not-a-mac') : accept(mac)
}

/** An InfiniBand card's address (20 bytes, or 8 of its port): no machine is known by one. */
export const isInfiniBand = (text: string): boolean =>
  /^[0-9a-f]{2}(?:[:-][0-9a-f]{2}){7}(?:(?:[:-][0-9a-f]{2}){12})?$/i.test(text)

/** Of one card: not all zeros, and no group's (broadcast, multicast). */
export const isStation = (mac: Mac): boolean =>
  mac !== '00:00:00:00:00:00' && (Number.parseInt(mac.slice(0, 2), 16) & 1) === 0

/** Renders an address in the spelling of file names and iPXE URLs: `aa-bb-cc-dd-ee-ff`. */
export const renderHyphens = (mac: Mac): string => mac.replaceAll(':', '-')

/** As people and switches do: with colons, hyphens, nothing, or dots after each four digits. */
export function listSpellings(mac: Mac): readonly string[] {
  const digits = mac.replaceAll(':', '')
  return [mac, renderHyphens(mac), digits, digits.replace(/^(.{4})(.{4})/, '$1.$2.')]
}

const PAIRS = /^[0-9a-f]{2}([:-]?)[0-9a-f]{2}(?:\1[0-9a-f]{2}){4}$/
const FOURS = /^[0-9a-f]{4}([.:-])[0-9a-f]{4}\1[0-9a-f]{4}$/

/** A word of a search that is a whole address in one of these spellings; null: it is none. */
export function findMac(word: string): Mac | null {
  const text = word.toLowerCase()
  if (!PAIRS.test(text) && !FOURS.test(text)) return null
  const parsed = parseMac(text.replace(/[.:-]/g, '').replace(/..(?!$)/g, '$&:'))
  return parsed.ok ? parsed.value : null
}

/** A MAC address in what others send or what is stored, in either spelling. */
export const MacSchema = z.string().transform((text, context) => {
  const mac = parseMac(text)
  if (mac.ok) return mac.value
  context.addIssue({ code: 'custom', message: 'not a MAC address' })
  return z.NEVER
})
