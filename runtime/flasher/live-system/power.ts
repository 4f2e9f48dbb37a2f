/** Restarts this machine. */
import { printable } from '#kit/foundation/printable.ts'
import { renderError } from '#kit/foundation/fault.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { Shell } from '#kit/host/shell.ts'

export type Power = ReturnType<typeof createPower>

/** A service manager that hangs must not keep a machine here. */
const TIMEOUT_MS = 15_000

/** The polite way first; the other one stops no service, but the kernel still syncs. */
const WAYS = [
  ['systemctl', 'reboot'],
  ['reboot', '-f'],
] as const

export function createPower({ shell }: { readonly shell: Shell }) {
  return {
    /** Resolves once the restart was accepted; the refusal is a clause. */
    async reboot(): Promise<Result<null, string>> {
      const reasons: string[] = []
      for (const argv of WAYS) {
        try {
          await shell.require(argv, { timeout: TIMEOUT_MS })
          return accept(null)
        } catch (thrown) {
          reasons.push(printable(renderError(thrown)))
        }
      }
      return refuse(reasons.join('; '))
    },
  }
}
