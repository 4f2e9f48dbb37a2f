/** Has the firmware boot a disk at the next boot, and only then ("FLASHER_REGISTER_UEFI_BOOT"). */
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import {
  BOOT_LABEL,
  findSystemPartition,
  loaderFor,
  parseBootEntries,
  type BootEntries,
} from './rules/boot-entry.ts'
import { Fault, renderError } from '#kit/foundation/fault.ts'
import { printable } from '#kit/foundation/printable.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { isFolder } from '#kit/host/folders.ts'
import type { Shell } from '#kit/host/shell.ts'

export type Nvram = ReturnType<typeof createNvram>

interface DiskToBoot {
  readonly node: string
  readonly sectorBytes: number
}

interface NvramOptions {
  readonly shell: Shell
  /** As Node names it. */
  readonly arch: string
  readonly sys?: string
}

const HEAD_BYTES = 2 ** 20
/** Some firmwares take seconds for each change. */
const TOOL_TIMEOUT = 30_000

/** `arch` decides which loader the firmware starts. */
export function createNvram({ shell, arch, sys = '/sys' }: NvramOptions) {
  const manage = (...args: readonly string[]) =>
    shell.require(['efibootmgr', ...args], { timeout: TOOL_TIMEOUT })
  const readEntries = async () => parseBootEntries(await manage())

  async function checkFirmware(): Promise<string> {
    const hasEfi = await isFolder(join(sys, 'firmware/efi/efivars'))
    if (!hasEfi) throw new Fault('not-found', 'this machine was not started by UEFI')
    const loader = loaderFor(arch)
    if (loader === null) throw new Fault('not-found', `no UEFI loader is known for ${arch}`)
    return loader
  }

  async function register({ node, sectorBytes }: DiskToBoot): Promise<string> {
    const loader = await checkFirmware()
    const part = findSystemPartition(await readHead(node), sectorBytes)
    if (!part.ok) throw new Fault('not-found', `${node} has ${MESSAGES[part.refusal]}`)
    const before = await readEntries()
    for (const number of before.ours)
      await manage('--quiet', '--bootnum', number, '--delete-bootnum')
    const location = ['--disk', node, '--part', String(part.value)]
    const names = ['--loader', loader, '--label', BOOT_LABEL]
    await manage('--quiet', '--create-only', ...location, ...names)
    const [number] = (await readEntries()).ours
    if (number === undefined) throw new Fault('tool-failed', 'the firmware did not keep the entry')
    await manage('--quiet', '--bootnext', number)
    return checkKept(before, await readEntries(), number)
  }

  return {
    /**
     * Sets the firmware's one-shot next boot; the boot order stays, and our earlier entries go.
     * Never throws, as the flash has succeeded. Both results are clauses.
     */
    async bootOnce(disk: DiskToBoot): Promise<Result<string, string>> {
      try {
        return accept(await register(disk))
      } catch (thrown) {
        return refuse(printable(renderError(thrown)).slice(0, 300))
      }
    },
  }
}

const MESSAGES = {
  'no-table': 'no partition table',
  'no-system-partition': 'no EFI system partition',
} as const

/** What the firmware holds counts, not what was asked for. */
function checkKept(before: BootEntries, after: BootEntries, number: string): string {
  if (after.next?.toUpperCase() !== number.toUpperCase()) {
    throw new Fault('tool-failed', 'the firmware did not accept it as the next boot')
  }
  const isKept = before.order === after.order
  return `the firmware boots it once, on the next boot (Boot${number})${isKept ? '' : '; the firmware changed its boot order'}`
}

async function readHead(node: string): Promise<Buffer> {
  await using file = await open(node)
  const head = Buffer.alloc(HEAD_BYTES)
  const { bytesRead } = await file.read(head, 0, HEAD_BYTES, 0)
  return head.subarray(0, bytesRead)
}
