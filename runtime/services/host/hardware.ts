/** The hardware tree of this machine, and what its kernel said last. */
import { parseJson } from '../../core/foundation/json-reader.ts'
import type { Shell } from './shell.ts'

export interface Hardware {
  /** What `lshw -json` says; null where it is not installed, fails, or takes too long. */
  readTree(): Promise<object | null>
  /** The last lines of the kernel's log; empty where it may not be read. */
  readKernelLog(): Promise<readonly string[]>
}

const TREE_TIMEOUT = 30_000
const LOG_TIMEOUT = 5000
const MAX_LOG_LINES = 200

export function createHardware({ shell }: { readonly shell: Shell }): Hardware {
  /** What a tool says; null when it cannot: best effort, for people to read. */
  const ask = async (argv: readonly string[], timeout: number) => {
    try {
      return await shell.require(argv, { timeout })
    } catch {
      return null
    }
  }
  return {
    async readTree() {
      const text = await ask(['lshw', '-json', '-quiet'], TREE_TIMEOUT)
      return text === null ? null : parseTree(text)
    },
    async readKernelLog() {
      const text = (await ask(['dmesg'], LOG_TIMEOUT)) ?? ''
      return text.trimEnd().split('\n').slice(-MAX_LOG_LINES).filter(Boolean)
    },
  }
}

/** Some versions leave out a comma; the server can do without. */
function parseTree(text: string): object | null {
  const tree = parseJson(text)
  return typeof tree === 'object' ? tree : null
}
