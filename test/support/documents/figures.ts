/** What counts as a figure of a page: each word with a digit in it, a bare number with its unit. */
import { createHash } from 'node:crypto'
import { withoutFenceBreaks } from './fences.ts'

export interface Figure {
  /** `12 seconds`, `0x80`, `127.0.0.1:8080`. */
  readonly phrase: string
  /** The line in which it begins, counted from 1. */
  readonly line: number
}

/**
 * Names that have a digit wherever they stand. One wrong digit never makes another name of this list out of
 * one (`test/figures.test.ts`): names of which that is not so, such as ext3 and ext4, count as figures.
 */
export const NAMES: ReadonlySet<string> = new Set(
  [
    'SHA-256 SHA256SUMS sha256 sha256sum index_sha256 image_sha256 UTF-8 utf-8 UTF-16',
    'x86-64 x86_64 amd64 arm64 bzip2 bz2 qcow2 lz4 img.bz2 .img.bz2 ed25519 base64 base64url',
    'e2fsprogs e2fsck resize2fs f2fs h3 db0 aws4fetch S3 s3 qemu-system-x86',
    'shimx64.efi grubx64.efi shimaa64.efi grubaa64.efi BOOTX64.EFI BOOTAA64.EFI',
  ].flatMap((names) => names.split(' ')),
)

/** Held as a whole: what was measured by its record, what is worked out by test/growth.test.ts, a screen by its digest. */
const MEASURED = /<!-- (measured:[\w-]+|bench:growth-\w+) -->[^]*?<!-- \/\1 -->/g
const SCREEN = /<!-- (screen: [^\n]+) -->[^]*?<!-- end -->/g
/** `[decision 38](decisions/0038-…)`: the link says the same number. */
const DECISION = /\[(?:decisions?[ /])?0*(\d+)\]\((?:decisions\/)?0*\1-[^)]*\)/g
const DIFF = /^ *```diff\n[^]*?^ *```$/gm
const COMMENT = /<!--[^]*?-->/g
const LINK = /\]\((?![a-z]+:)[^)\s]*\)/g
const LIST_NUMBER = /^ *\d+\. /gm
const EDGES = /^[^\p{L}\p{N}$/<~]+|[^\p{L}\p{N}%/>]+$/gu

/** What a bare number may count; any other word behind it can be said in another way. */
const UNIT =
  /^(?:[KMGT]i?B|k?B|bytes?|m?s|h|seconds?|minutes?|hours?|days?|months?|%|MHz|MiB\/s|MB\/s|baud|machines?|disks?|files?|runs?|times?|letters?|characters?|levels?|rounds?|rows?|cores?|threads?|frames?|packages?|bits?)$/

const blank = (text: string) => text.replaceAll(/[^\n]/g, ' ')

/**
 * Lists the figures of a page, without what other checks hold: blocks that a script records, diffs, targets of
 * links, the numbers of a list.
 */
export function listFigures(page: string): readonly Figure[] {
  const text = [MEASURED, SCREEN, DECISION, DIFF, COMMENT, LINK, LIST_NUMBER].reduce(
    (rest, pattern) => rest.replaceAll(pattern, blank),
    page,
  )
  const figures = listScreens(page)
  let line = 1
  let bare: string | null = null
  const end = (more: string) => {
    if (bare === null) return
    figures.push({ phrase: UNIT.test(more) ? `${bare} ${more}` : bare, line })
    bare = null
  }
  // Both have the same length, so lines are counted in the text.
  let at = 0
  for (const part of withoutFenceBreaks(text).split(/(\s+|\|)/)) {
    const from = at
    at += part.length
    const word = part.replaceAll(EDGES, '')
    if (part === '|') end('')
    if (word !== '') end(word)
    line += text.slice(from, at).split('\n').length - 1
    if (word === '') continue
    if (!/\d/.test(word) || NAMES.has(word)) continue
    if (/^[\d.,–%-]+$/.test(word)) bare = word
    else figures.push({ phrase: word, line })
  }
  end('')
  return figures
}

function listScreens(page: string): Figure[] {
  return [...page.matchAll(SCREEN)].map((found) => {
    const [whole, name] = found
    const digest = createHash('sha256').update(whole).digest('hex').slice(0, 16)
    const line = page.slice(0, found.index).split('\n').length
    return { phrase: `${name}, ${digest}`, line }
  })
}

/** Whether each numbered list counts up by one from 1. */
export function listWrongNumbers(page: string): readonly string[] {
  const wrong: string[] = []
  const last = new Map<number, number>()
  for (const [at, text] of page.split('\n').entries()) {
    const [, indent = '', number] = /^( *)(\d+)\. /.exec(text) ?? []
    if (text.startsWith('#')) last.clear()
    if (number === undefined) continue
    const before = last.get(indent.length) ?? 0
    if (Number(number) !== 1 && Number(number) !== before + 1) {
      wrong.push(`line ${at + 1}: the list goes from ${before} to ${number}`)
    }
    last.set(indent.length, Number(number))
  }
  return wrong
}
