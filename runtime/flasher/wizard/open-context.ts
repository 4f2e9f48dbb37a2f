/** Opens the wizard's context: the terminal at once, services when a screen first needs them. */
import { decideDefaultCatalog } from '#engine/catalog/rules/catalog-source.ts'
import { resolveImageRoot } from '#engine/image/image-folder.ts'
import { findOwnCard } from '#fleet/boot/host-addresses.ts'
import { listImages } from '#engine/image/image-folder.ts'
import { readVersion } from '#kit/host/package-manifest.ts'
import type { TerminalEnvironment } from '#kit/terminal/command/program.ts'
import { ask } from '#kit/terminal/prompt/ask.ts'
import {
  encodeFor,
  encodeOutput,
  createInk,
  decideTerminalStyle,
} from '#kit/terminal/text/terminal-style.ts'
import { createPainter } from '#kit/terminal/prompt/painter.ts'
import type { WizardContext } from './screens/pending-question.ts'
import type { RemoteDependencies } from '#flasher/order/remote-hooks.ts'
import type { Environment } from '#kit/host/shell.ts'

/** `FLASHER_LIVE=1`: the machine was booted to be flashed, and may be restarted. */
export interface WizardEnvironment extends TerminalEnvironment {
  /** As Node names it: `x64`, `arm64`. */
  readonly arch: string
}

/** `mac` null: that of this machine's first network card is shown. */
export async function openWizardContext(
  environment: WizardEnvironment,
  mac: string | null,
): Promise<WizardContext> {
  const { env, stdin, stdout, isRoot, signal, now } = environment
  const style = decideTerminalStyle(env, stdout.isTTY)
  const out = encodeOutput(stdout, env)
  const painter = createPainter(stdout, encodeFor(env))
  const imageRoot = resolveImageRoot(null, env)
  const card = findOwnCard(mac?.toLowerCase().replaceAll('-', ':') ?? null)
  const identity = { ...card, server: null }
  const reboots = env['FLASHER_LIVE'] === '1'
  const setting = { version: await readVersion(), identity, imageRoot, reboots }
  const remoteEnvironment = { ...environment, now: () => now() * 1000 }
  const loadDisks = once(async () => {
    const { openOfferedDisks } = await import('#engine/disk/offered-disks.ts')
    return openOfferedDisks(env)
  })
  return {
    stdin,
    stdout: out,
    style,
    painter,
    drawing: { setting, ink: createInk(style), unicode: style.unicode, tty: style.tty },
    signal,
    isRoot,
    env,
    now,
    defaultCatalog: decideDefaultCatalog({
      named: env['FLASHER_DEFAULT_CATALOG'],
      kernel: undefined,
      releaseBaseUrl: env['FLASHER_RELEASES_BASE_URL'],
    }),
    reboot: reboots ? () => restart(env) : null,
    ask(subject) {
      painter.forget()
      return ask(subject, { stdin, stdout: out, style, painter }, signal)
    },
    listLocal: () => listImages(imageRoot),
    async loadCatalog(source, until) {
      const { createCatalogSources } = await import('#engine/catalog/catalog-sources.ts')
      return createCatalogSources({ env })(source, until)
    },
    async loadHooks() {
      const { createStandaloneHooks } = await import('#flasher/order/remote-services.ts')
      return createStandaloneHooks(remoteEnvironment)
    },
    async loadRemote(): Promise<RemoteDependencies> {
      const { createRemoteDependencies } = await import('#flasher/order/remote-services.ts')
      return createRemoteDependencies(remoteEnvironment)
    },
    surveyDisks: async () => (await loadDisks()).survey(),
    fillContents: async (disk) => (await loadDisks()).fill(disk),
    loadFlasher: once(async () => {
      const { createFlasher } = await import('#engine/flash/flasher.ts')
      return createFlasher({ env, isRoot })
    }),
  }
}

async function restart(env: Environment) {
  const [{ createPower }, { createShell }] = await Promise.all([
    import('#flasher/live-system/power.ts'),
    import('#kit/host/shell.ts'),
  ])
  return createPower({ shell: createShell({ env }) }).reboot()
}

function once<Value>(load: () => Promise<Value>): () => Promise<Value> {
  let loaded: Promise<Value> | null = null
  return () => (loaded ??= load())
}
