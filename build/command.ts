/** The command line of `pnpm build:images`. */
import type { Appliance } from '#appliance/appliance.ts'
import { readArguments, UsageError, type Script } from './arguments.ts'
import { parseServerBase } from '#build/ipxe/script.ts'
import { LEVELS, type Level } from '#build/steps/step.ts'
import { nearestOf } from '#kit/foundation/nearest.ts'

export interface BuildOptions {
  readonly names: readonly string[]
  readonly plan: boolean
  readonly json: boolean
  readonly twice: boolean
  readonly level: Level
  /** The address without a slash at its end. */
  readonly ipxeServer: string | null
  readonly ipxeSource: string | null
  /** Disk images that lie on the stick as files. */
  readonly images: readonly string[]
}

const SCRIPT = {
  name: 'build:images',
  summary: [
    'Builds images into dist/: netboot-pc, ipxe-efi, secureboot-efi and usb-pc, or those that are named, server and server-rpi among them.',
    'Steps whose inputs have not changed come from the cache.',
  ],
  positionals: 'image',
  options: {
    level: { value: 'dev|release', help: 'How hard compressors try', default: 'dev' },
    plan: { help: 'Prints the steps and builds nothing' },
    json: { help: 'Prints the plan, or what happens during the build, as JSON' },
    twice: { help: 'Builds from nothing in two places and compares the bytes' },
    'ipxe-server': { value: 'URL', help: 'Our iPXE always asks this machine server' },
    'ipxe-src': {
      value: 'DIR',
      help: "Compiles iPXE from this source tree instead of using Debian's",
    },
    image: { value: 'FILE', help: 'With usb-files: a disk image for the folder; repeatable' },
  },
  examples: [
    'usb-pc',
    '--level release',
    'usb-files --image debian.img.zst',
    'netboot-pc ipxe-efi --plan --json',
  ],
} as const satisfies Omit<Script, 'version'>

/**
 * Reads the command line of a build.
 *
 * @param argv has neither program nor script.
 * @param known are built when none is named.
 * @param named are built only then.
 * @returns null when help or the version was asked for and printed.
 * @throws {UsageError} An argument is wrong.
 */
export function readBuild(
  argv: readonly string[],
  known: readonly Appliance[],
  version: string,
  named: readonly Appliance[] = [],
): BuildOptions | null {
  const given = readArguments({ ...SCRIPT, version }, argv)
  if (given === null) return null
  const { positionals, switches, values } = given
  const names = known.map(({ name }) => name)
  const all = [...names, ...named.map(({ name }) => name)]
  for (const name of positionals) if (!all.includes(name)) throw unknownImage(name, all)
  const wanted = positionals.length === 0 ? names : positionals
  return {
    names: wanted,
    plan: switches.has('plan'),
    json: switches.has('json'),
    twice: switches.has('twice'),
    level: readLevel(values['level']),
    ipxeServer: readServer(values['ipxe-server']),
    ipxeSource: readFolder(values['ipxe-src']),
    images: readImages(given.lists['image'] ?? [], wanted),
  }
}

function unknownImage(name: string, names: readonly string[]): UsageError {
  const nearest = nearestOf(name, names)
  const hint = nearest === null ? '' : `; did you mean ${nearest}?`
  return new UsageError(`there is no image ${name}${hint} (images: ${names.join(', ')})`)
}

export function readLevel(text = ''): Level {
  const level = LEVELS.find((one) => one === text)
  if (level !== undefined) return level
  const nearest = nearestOf(text, LEVELS)
  const hint = nearest === null ? '' : `; did you mean ${nearest}?`
  throw new UsageError(`--level must be ${LEVELS.join(' or ')}${text && `, not ${text}`}${hint}`)
}

function readServer(text: string | undefined): string | null {
  if (text === undefined) return null
  const base = parseServerBase(text)
  if (base !== null) return base
  throw new UsageError(
    `--ipxe-server must be like http://HOST:PORT or https://HOST/PATH${text && `, not ${text}`}`,
  )
}

function readImages(paths: readonly string[], names: readonly string[]): readonly string[] {
  if (paths.includes('')) throw new UsageError('--image requires a file')
  if (paths.length > 0 && !names.includes('usb-files')) {
    throw new UsageError('--image is for usb-files: name it as well')
  }
  return paths
}

function readFolder(text: string | undefined): string | null {
  if (text === '') throw new UsageError('--ipxe-src requires a folder')
  return text ?? null
}
