/** Reads the hardware tree of this machine, and the last lines of its kernel's log. */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseExact } from '#kit/foundation/json-reader.ts'
import type { Shell } from '#kit/host/shell.ts'
import { MAX_HARDWARE_BYTES } from './rules/machine.ts'
import { parseBmcAddress, renderBootTimes } from './rules/inventory.ts'

export type HardwareReader = ReturnType<typeof createHardware>

const TREE_TIMEOUT = 30_000
const BMC_TIMEOUT = 10_000
const LOG_TIMEOUT = 5000
const MAX_LOG_LINES = 200

/** When the kernel took over, in nanoseconds since the reset (ACPI's FPDT). */
const FIRMWARE_END = 'sys/firmware/acpi/fpdt/boot/exitbootservice_end_ns'
const SYSTEM_BEGAN = ['systemctl', 'show', '--property=UserspaceTimestampMonotonic', '--value']

const readText = (path: string) => readFile(path, 'utf8').catch(() => '')

/** The machine's own BMC. */
const IPMI = '/dev/ipmi0'

interface HardwareDependencies {
  readonly shell: Shell
  /** Absent: the kernel's device. */
  readonly ipmi?: string
  /** Of the kernel's files; absent: `/`. */
  readonly root?: string
}

/** Never rejects: a tool that is missing, fails or is too slow yields null or an empty list. */
export function createHardware({ shell, ipmi = IPMI, root = '/' }: HardwareDependencies) {
  const ask = (argv: readonly string[], timeout: number) =>
    shell.require(argv, { timeout }).catch(() => null)
  /** It does not change within a boot. */
  let began: Promise<string | null> | null = null
  return {
    /** What `lshw -json` prints; null: not there, failed, too slow, or more than a server keeps. */
    async readTree(): Promise<object | null> {
      const text = await ask(['lshw', '-json', '-quiet'], TREE_TIMEOUT)
      // Some versions leave out a comma; the server can do without.
      const tree = parseExact((text ?? '').length > MAX_HARDWARE_BYTES ? '' : (text ?? ''))
      return typeof tree === 'object' ? tree : null
    },
    /** IPv4, as the BMC reports itself. */
    async readBmcAddress(): Promise<string | null> {
      // Most machines have none, and need no program to find out.
      if (!existsSync(ipmi)) return null
      return parseBmcAddress((await ask(['ipmitool', 'lan', 'print'], BMC_TIMEOUT)) ?? '')
    },
    /** The query of a request for a plan, for now; empty where kernel and systemd do not tell. */
    async readBootTimes(): Promise<string> {
      const [up, firmware, micros] = await Promise.all([
        readText(join(root, 'proc/uptime')),
        readText(join(root, FIRMWARE_END)),
        (began ??= ask(SYSTEM_BEGAN, LOG_TIMEOUT)),
      ])
      return renderBootTimes({ up, firmware, micros: micros ?? '' })
    },
    /** The last lines; empty where it may not be read. */
    async readKernelLog(): Promise<readonly string[]> {
      const text = (await ask(['dmesg'], LOG_TIMEOUT)) ?? ''
      return text.trimEnd().split('\n').slice(-MAX_LOG_LINES).filter(Boolean)
    },
  }
}
