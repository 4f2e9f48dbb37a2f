/** Reads what the demo requires to know of this host. */
import { spawn } from 'node:child_process'
import { accessSync, constants, existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { freemem } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { netbootTrio } from '#appliance/assets.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { PROBE_EXIT_CODE, type Accelerator } from './machine.ts'
import type { ReleaseSite } from './live-source.ts'
import { decideFamily, type DemoHost } from './needs.ts'

const ROMS = ['efi-virtio.rom', 'pxe-virtio.rom']
const QEMU = 'qemu-system-x86_64'

/** Finds out what QEMU there is and what it can do, and how much memory is free, in bytes. */
export async function readDemoHost(): Promise<DemoHost> {
  const version = await runTool([QEMU, '--version'])
  const folders = version === null ? '' : ((await runTool([QEMU, '-L', 'help'])) ?? '')
  const displays = version === null ? '' : ((await runTool([QEMU, '-display', 'help'])) ?? '')
  const osRelease = await readFile('/etc/os-release', 'utf8').catch(() => '')
  return {
    family: decideFamily(process.platform, osRelease),
    isRoot: process.getuid?.() === 0,
    qemu: version === null ? null : (/version (\S+)/.exec(version)?.[1] ?? ''),
    hasRom: folders
      .split('\n')
      .some((folder) => ROMS.some((rom) => existsSync(join(folder.trim(), rom)))),
    hasWindow: /^(gtk|sdl|cocoa)$/m.test(displays),
    freeBytes: freemem(),
  }
}

/** What it printed; null where it is not there or fails. */
export async function runTool(argv: readonly string[]): Promise<string | null> {
  const { code, stdout } = await runTimed(argv, 30_000)
  return code === 0 ? stdout : null
}

/** `code` is null where it did not start, or did not end in time. */
function runTimed(argv: readonly string[], milliseconds: number) {
  const [program = '', ...words] = argv
  const child = spawn(program, words, {
    stdio: ['ignore', 'pipe', 'ignore'],
    timeout: milliseconds,
    killSignal: 'SIGKILL',
  })
  let stdout = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  return new Promise<{ readonly code: number | null; readonly stdout: string }>((resolve) => {
    child.once('error', () => resolve({ code: null, stdout }))
    child.once('close', (code) => resolve({ code, stdout }))
  })
}

/** An accelerator that works runs a sector in a fraction of it; some hang, or are slower than none. */
const PROBE_MS = 2000

/** KVM where it is there and runs a machine at once, else emulation. `argv`: `planProbe`'s. */
export async function chooseAccelerator(argv: readonly string[]): Promise<Accelerator> {
  try {
    accessSync('/dev/kvm', constants.R_OK | constants.W_OK)
  } catch {
    return 'tcg'
  }
  const { code } = await runTimed(argv, PROBE_MS)
  return code === PROBE_EXIT_CODE ? 'kvm' : 'tcg'
}

/**
 * Finds the version of a complete live system among the folder's files, the newest; null: there is
 * none.
 */
export async function findLiveSystem(folder: string): Promise<string | null> {
  const names: readonly string[] = await readdir(folder).catch(() => [])
  const kernels = names.flatMap((name) => {
    const [, version = ''] = /^flasher-netboot-pc-x86_64-v(.+)\.vmlinuz$/.exec(name) ?? []
    return version === '' ? [] : [version]
  })
  const complete = kernels.filter((version) =>
    Object.values(netbootTrio('x86_64', version)).every((name) => names.includes(name)),
  )
  const newest = complete.toSorted((one, two) => two.localeCompare(one, 'en', { numeric: true }))[0]
  return newest ?? null
}

/** How many ports from the first one on are tried. */
const MAX_PORTS = 20

/** The first that is free on loopback. */
export async function findFreePort(first: number): Promise<number> {
  for (let port = first; port < first + MAX_PORTS; port += 1) {
    if (await isFree(port)) return port
  }
  throw new Error(`ports ${first} to ${first + MAX_PORTS - 1} on 127.0.0.1 are all in use`)
}

function isFree(port: number): Promise<boolean> {
  const server = createServer()
  return new Promise((resolve) => {
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}

/**
 * Reads the site that hosts releases from the server's own configuration on this host; null: none
 * is set.
 */
export async function readReleaseSite(checkout: string): Promise<ReleaseSite | null> {
  const program = join(checkout, 'runtime/bin/flasher-web.ts')
  const text = await runTool([process.execPath, program, 'config', 'show', '--json'])
  const parsed = ConfigSchema.safeParse(text === null ? null : parseJson(text))
  if (!parsed.success) return null
  const valueOf = (name: string) =>
    parsed.data.settings.find(({ section, key }) => `${section}.${key}` === name)?.value ?? ''
  const url = valueOf('releases.base_url')
  const repository = valueOf('boot.release_repo')
  if (url === '' || repository === '') return null
  return { url, repository, tag: valueOf('boot.release_tag') || 'latest' }
}

const ConfigSchema = z.object({
  settings: z.array(z.object({ section: z.string(), key: z.string(), value: z.string() })),
})
