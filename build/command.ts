/** The command line of `pnpm build:images`. */
import { parseArgs } from 'node:util'
import type { Appliance } from '../appliance/appliance.ts'
import { parseServerBase } from './ipxe/script.ts'
import { LEVELS, type Level } from './steps/step.ts'

export interface BuildWish {
  readonly ok: true
  readonly names: readonly string[]
  readonly help: boolean
  readonly plan: boolean
  readonly json: boolean
  readonly twice: boolean
  readonly level: Level
  /** Without a slash at its end. */
  readonly ipxeServer: string | null
  readonly ipxeSource: string | null
}

export type Command = BuildWish | { readonly ok: false; readonly why: string }

export const USAGE = `usage: pnpm build:images [NAME…] [options]

Makes bootable images into dist/: netboot-pc, ipxe-efi, usb-pc; all of them when none is named.

  --level dev|release  how hard compressors try (default: dev)
  --plan               prints the steps and ends
  --json               steps, or what happens, as JSON
  --twice              builds from nothing in two places and compares the bytes
  --ipxe-server URL    our iPXE asks this machine server, wherever it was loaded from
  --ipxe-src DIR       compiles iPXE from this source tree instead of taking Debian's
  --help               prints this`

const flag = { type: 'boolean', default: false } as const
const OPTIONS = {
  help: flag,
  plan: flag,
  json: flag,
  twice: flag,
  level: { type: 'string', default: 'dev' },
  'ipxe-server': { type: 'string' },
  'ipxe-src': { type: 'string' },
} as const

/** `argv` without program and script. */
export function parseBuild(argv: readonly string[], known: readonly Appliance[]): Command {
  const parsed = readOptions(argv)
  if (typeof parsed === 'string') return { ok: false, why: parsed }
  const { values, positionals } = parsed
  const names = known.map(({ name }) => name)
  const stranger = positionals.find((name) => !names.includes(name))
  if (stranger !== undefined) {
    return { ok: false, why: `there is no image ${stranger}, only ${names.join(', ')}` }
  }
  const level = LEVELS.find((one) => one === values.level)
  if (level === undefined) {
    return { ok: false, why: `--level is ${LEVELS.join(' or ')}, not ${values.level}` }
  }
  const server = values['ipxe-server']
  const ipxeServer = server === undefined ? null : parseServerBase(server)
  if (server !== undefined && ipxeServer === null) {
    return { ok: false, why: `--ipxe-server is http://HOST:PORT, or with a path, not ${server}` }
  }
  const { help, plan, json, twice } = values
  const ipxeSource = values['ipxe-src'] ?? null
  const wanted = positionals.length === 0 ? names : positionals
  return { ok: true, names: wanted, help, plan, json, twice, level, ipxeServer, ipxeSource }
}

function readOptions(argv: readonly string[]) {
  try {
    return parseArgs({ args: [...argv], options: OPTIONS, allowPositionals: true })
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
