/** Reads the hardware tree of this machine, and the last lines of its kernel's log. */
import { existsSync } from 'node:fs'
import { parseExact } from '../../kit/foundation/json/json-exact.ts'
import type { Shell } from '../../kit/host/shell.ts'
import { parseBmcAddress } from './rules/bmc-address.ts'

export type HardwareReader = ReturnType<typeof createHardware>

const TREE_TIMEOUT = 30_000
const BMC_TIMEOUT = 10_000
const LOG_TIMEOUT = 5000
const MAX_LOG_LINES = 200

/** The kernel's device of the machine's own BMC. */
const IPMI = '/dev/ipmi0'

interface HardwareDependencies {
  readonly shell: Shell
  /** Where the device of the BMC is; the kernel's own when absent. */
  readonly ipmi?: string
}

/**
 * Creates the reader of this machine's hardware. It never rejects: a tool that is missing, fails or
 * takes too long yields null or an empty list.
 */
export function createHardware({ shell, ipmi = IPMI }: HardwareDependencies) {
  /** What a tool prints; null when it fails: best effort, for people to read. */
  const ask = (argv: readonly string[], timeout: number) =>
    shell.require(argv, { timeout }).catch(() => null)
  return {
    /** What `lshw -json` prints; null where it is not installed, fails, or takes too long. */
    async readTree(): Promise<object | null> {
      const text = await ask(['lshw', '-json', '-quiet'], TREE_TIMEOUT)
      // Some versions leave out a comma; the server can do without.
      const tree = parseExact(text ?? '')
      return typeof tree === 'object' ? tree : null
    },
    /** The IPv4 address of the machine's BMC, which it tells itself; null where there is none, or it has no address. */
    async readBmcAddress(): Promise<string | null> {
      // Most machines have none, and need no program to say so.
      if (!existsSync(ipmi)) return null
      return parseBmcAddress((await ask(['ipmitool', 'lan', 'print'], BMC_TIMEOUT)) ?? '')
    },
    /** The last lines of the kernel's log; empty where it may not be read. */
    async readKernelLog(): Promise<readonly string[]> {
      const text = (await ask(['dmesg'], LOG_TIMEOUT)) ?? ''
      return text.trimEnd().split('\n').slice(-MAX_LOG_LINES).filter(Boolean)
    },
  }
}
