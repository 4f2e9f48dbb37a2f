/** Starts the wizard on each console of the live system, as the kernel command line asks. */
import {
  isDriven,
  parseLiveBoot,
  renderDriverArgs,
  renderGuestArgs,
  renderWizardEnv,
  type LiveBoot,
} from '#fleet/boot/rules/live-boot.ts'
import { parseServerAddress } from '#kit/net/rules/server-address.ts'
import type { Environment } from '#kit/host/shell.ts'
import { serveConsole, type LiveConsole } from './live-console.ts'

export interface ConsoleEnvironment extends LiveConsole {
  /** Returns the exit code. */
  wizard(argv: readonly string[], env: Environment): Promise<number>
}

/** The exit code; 0 tells the service manager that nothing is left to do. */
export const serveCurrentConsole = (environment: ConsoleEnvironment): Promise<number> =>
  serveConsole(environment, (kernelArguments) => {
    const boot = parseLiveBoot(kernelArguments)
    return {
      drive: isDriven(boot) ? () => driveWizard(boot, environment) : null,
      guest: () => serveGuest(boot, environment),
    }
  })

const driveWizard = (boot: LiveBoot, { env, wizard }: ConsoleEnvironment): Promise<number> =>
  wizard(renderDriverArgs(boot), { ...env, ...renderWizardEnv(boot) })

async function serveGuest(boot: LiveBoot, environment: ConsoleEnvironment): Promise<number> {
  const base = await findBase(boot, environment)
  const env = { ...environment.env, ...renderWizardEnv(boot, base) }
  return await environment.wizard(renderGuestArgs(boot, base), env)
}

/** A person waits for the first screen. */
const SEARCH_MS = 5000

/** Null: no server is named, or none answers. */
async function findBase(
  { server, others }: LiveBoot,
  { signal }: ConsoleEnvironment,
): Promise<string | null> {
  const bases = parseServerAddress(server ?? '')
  if (!bases.ok) return null
  const [base, ...more] = [...bases.value, ...others]
  if (more.length === 0) return base ?? null
  const { findServer } = await import('#flasher/link/server-site.ts')
  const found = await findServer([...bases.value, ...others], { signal, timeoutMs: SEARCH_MS })
  return found ?? bases.value.at(-1) ?? null
}
