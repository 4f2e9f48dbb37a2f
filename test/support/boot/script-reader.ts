/** What a boot script does on a processor, whichever boot loader's words it is in. */
import type { BootArch } from '#fleet/boot/rules/boot-set.ts'

interface Doing {
  /** URLs; null: nothing is booted. */
  readonly kernel: string | null
  readonly initrd: string | null
  readonly args: readonly string[]
  /** The scripts of other servers that are asked for after a failed attempt. */
  readonly others: readonly string[]
  /** Seconds between the attempts. */
  readonly pauses: readonly number[]
  /** What follows when nothing was booted: `disk`, or seconds and what is said while it waits. */
  readonly end: string
}

export const linesOf = (script: string): readonly string[] =>
  script
    .trimEnd()
    .split('\n')
    .map((line) => line.trim())

const find = (lines: readonly string[], pattern: RegExp): RegExpExecArray | null =>
  lines.map((line) => pattern.exec(line)).find((found) => found !== null) ?? null

const listAll = (lines: readonly string[], pattern: RegExp): readonly string[] =>
  lines.flatMap((line) => pattern.exec(line)?.[1] ?? [])

const wordsOf = (text = '') => text.split(' ').filter((word) => word !== '')

export function readIpxe(script: string, arch: BootArch): Doing {
  const lines = linesOf(script)
  const own = pick(lines, lines.indexOf(':arm64'), {
    hasBranches: lines.includes('iseq ${buildarch} arm64 && goto arm64 ||'),
    isSecond: arch === 'arm64',
  })
  const kernel = find(own, /^kernel (?:--timeout 3000 )?(\S+) (.*) \|\| goto again$/)
  const limit = Number(find(lines, /^iseq \$\{pause\} (\d+) && goto otherwise/)?.[1] ?? 0)
  return {
    kernel: kernel?.[1] ?? null,
    initrd: find(own, /^initrd (?:--timeout 3000 )?--name initrd (\S+) /)?.[1] ?? null,
    args: wordsOf(kernel?.[2]).filter((word) => word !== 'initrd=initrd'),
    others: listAll(lines, /^chain --timeout 3000 --autofree (\S+) && exit \|\|$/),
    pauses: limit === 0 ? [] : Array.from({ length: Math.log2(limit) }, (_, n) => 2 ** n),
    end: readEnd(lines, 'iseq ${platform} efi && exit ||', lines.at(-2) ?? ''),
  }
}

export function readGrub(script: string, arch: BootArch): Doing {
  const lines = linesOf(script)
  const loop = lines.slice(find(lines, /^for pause/) === null ? lines.length : 0)
  const own = pick(loop, loop.indexOf('else'), {
    hasBranches: loop.indexOf('else') !== -1 && loop.indexOf('else') < loop.indexOf('done'),
    isSecond: arch === 'x86_64',
  })
  const kernel = find(own, /^if linux (\S+) (.*); then$/)
  return {
    kernel: urlOf(kernel?.[1]),
    initrd: urlOf(find(own, /^if initrd (\S+); then boot; fi$/)?.[1]),
    args: wordsOf(kernel?.[2]).map((word) => word.replaceAll('"', '')),
    others: listAll(lines, /^source "\(http,([^?]*)\.grub\?/).map(
      (at) =>
        `http://${at
          .replace(')', '')
          .replaceAll(':', '-')
          .replace(/-(\d+\/)/, ':$1')}`,
    ),
    pauses: wordsOf(find(lines, /^(?:for pause in |set pauses=")(.*) 0(?:; do|")$/)?.[1]).map(
      Number,
    ),
    end: readEnd(
      lines,
      'if chainloader "$disk$loader"; then boot; fi',
      lines.findLast((line) => line !== 'fi') ?? '',
    ),
  }
}

interface Branches {
  readonly hasBranches: boolean
  readonly isSecond: boolean
}

const pick = (lines: readonly string[], at: number, { hasBranches, isSecond }: Branches) => {
  if (!hasBranches) return lines
  return isSecond ? lines.slice(at) : lines.slice(0, at)
}

function readEnd(lines: readonly string[], toDisk: string, sleep: string): string {
  if (lines.includes(toDisk)) return 'disk'
  const said = find(lines, / waits: ?(.*?)"?$/)?.[1]
  return `${/^sleep (\d+)/.exec(sleep)?.[1]} ${said}`
}

const urlOf = (file: string | undefined) =>
  file?.replace(/^"\(http,([^)]+)\)(.*)"$/, 'http://$1$2') ?? null
