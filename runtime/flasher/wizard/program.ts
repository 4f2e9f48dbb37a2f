/** `flasher` without a command: the wizard, alone or driven by a server ("Wizard command line"). */
import type { Arguments } from '#kit/terminal/command/rules/arguments.ts'
import {
  decideTerminalStyle,
  encodeFor,
  encodeOutput,
  createInk,
} from '#kit/terminal/text/terminal-style.ts'
import type { WizardContext } from './screens/screen.ts'
import { DEFAULT_SERVER } from './options.ts'
import type { Hooks, WizardStart } from '#flasher/order/rules/flash-choice.ts'
import {
  next,
  openState,
  choiceOf,
  type ScreenName,
  type WizardState,
  type WizardStep,
} from './flow/flow.ts'
import { decideDefaultCatalog } from '#engine/catalog/rules/catalog-source.ts'
import { resolveImageRoot, listImages } from '#engine/image/image-folder.ts'
import { findOwnCard } from '#fleet/boot/pxe-helper.ts'
import { readVersion } from '#kit/host/package-manifest.ts'
import type { TerminalEnvironment } from '#kit/terminal/command/program.ts'
import { ask } from '#kit/terminal/prompt/ask.ts'
import { createPainter } from '#kit/terminal/prompt/painter.ts'
import type { RemoteDependencies } from '#flasher/order/remote-hooks.ts'
import type { Environment } from '#kit/host/shell.ts'

const SUCCESS = 0
const FAILED = 1
/** What a shell reports for SIGINT. */
const CANCELLED = 130

/** Returns the exit code. A Fault `misuse` if there is neither a terminal nor a server. */
export async function wizard(environment: WizardEnvironment, given: Arguments): Promise<number> {
  const { stdin, stdout, signal } = environment
  const hasTerminal = stdin.isTTY && stdout.isTTY
  if (!hasTerminal) {
    const { requireServer } = await import('./unattended.ts')
    requireServer(given)
  }
  const context = await openWizardContext(environment, given.values['mac'] ?? null)
  try {
    const beginning = await begin(given, context)
    if (beginning.kind === 'exit') return beginning.code
    const { start, hooks } = beginning
    if (!hasTerminal) {
      // There may be a screen without a keyboard.
      context.painter.leave()
      const message = start.notice ?? 'the server asks for the wizard'
      const { createLog } = await import('#kit/terminal/text/log.ts')
      const style = decideTerminalStyle(environment.env, environment.stderr.isTTY)
      createLog({ program: 'flasher', stderr: environment.stderr, style }).fail(
        message,
        'The wizard requires a terminal.',
      )
      return signal.aborted ? CANCELLED : FAILED
    }
    await runWizard(start, await takeOver(context, start, hooks))
    return SUCCESS
  } finally {
    context.painter.leave()
  }
}

type Beginning =
  | { readonly kind: 'exit'; readonly code: number }
  | { readonly kind: 'interactive'; readonly start: WizardStart; readonly hooks: Hooks | null }

async function begin(given: Arguments, context: WizardContext): Promise<Beginning> {
  const { mac, catalog = null } = given.values
  const [first = null, ...others] = given.lists['server'] ?? []
  if (mac === undefined) return beginAlone(catalog, first, context)
  const server = first ?? DEFAULT_SERVER
  const [{ drive }, { createDrivenScreen }, parts] = await Promise.all([
    import('#flasher/order/remote.ts'),
    import('./screens/flashing.ts'),
    context.loadRemote(),
  ])
  return drive(createDrivenScreen(context, server), { mac, server, others }, parts)
}

async function beginAlone(
  catalog: string | null,
  server: string | null,
  context: WizardContext,
): Promise<Beginning> {
  // The screen of the images reports what is wrong.
  const hasImages = (await context.listLocal().catch(() => [])).length > 0
  const screen = catalog !== null || hasImages ? 'image' : 'catalog'
  // With FLASHER_LIVE_MAC another console follows the server; flashes here are only reported.
  const isAlone = server !== null && (context.env['FLASHER_LIVE_MAC'] ?? '') === ''
  const notices = [
    ...(isAlone
      ? [
          `The server ${server} is not used, because the MAC address of this machine is unknown. Set --mac, or flasher.mac= on the kernel command line. Flashes are not reported.`,
        ]
      : []),
    ...(context.isRoot ? [] : ['Without root you can look at disks, but not write to them.']),
  ]
  const notice = notices.join(' ') || null
  const identity = { ...context.drawing.setting.identity, server }
  const start: WizardStart = { screen, catalog, notice, identity }
  return { kind: 'interactive' as const, start, hooks: null }
}

async function takeOver(
  context: WizardContext,
  { identity }: WizardStart,
  hooks: Hooks | null,
): Promise<WizardContext> {
  const given = context.drawing
  const drawing = { ...given, setting: { ...given.setting, identity } }
  // A driving server has loaded it already.
  const code = identity.server === null ? null : await loadCode(drawing)
  return {
    ...context,
    drawing: code === null ? drawing : { ...drawing, code },
    ...(hooks === null ? {} : { loadHooks: () => Promise.resolve(hooks) }),
  }
}

async function loadCode(drawing: WizardContext['drawing']) {
  const { loadMachineCode } = await import('./screens/screen.ts')
  return loadMachineCode(drawing)
}

/** Lazy: a screen is loaded when it is shown. */
const SCREENS: Readonly<
  Record<
    ScreenName,
    () => Promise<(state: WizardState, context: WizardContext) => Promise<WizardStep>>
  >
> = {
  catalog: async () => (await import('./screens/choose-image.ts')).chooseCatalog,
  source: async () => (await import('./screens/choose-image.ts')).typeSource,
  image: async () => (await import('./screens/choose-image.ts')).chooseImage,
  disk: async () => (await import('./screens/choose-disk.ts')).chooseTarget,
  confirm: async () => (await import('./screens/confirm.ts')).confirm,
  flash: async () => flash,
  failed: async () => (await import('./screens/flashing.ts')).showFailure,
  done: async () => (await import('./screens/flashing.ts')).showDone,
  'capture-disk': async () => (await import('./capture/choose-capture.ts')).chooseSource,
  'capture-destination': async () =>
    (await import('./capture/choose-capture.ts')).chooseDestination,
  'capture-token': async () => (await import('./capture/choose-capture.ts')).typeToken,
  'capture-confirm': async () => (await import('./capture/confirm-capture.ts')).confirmCapture,
  'capture-failed': async () => (await import('./capture/confirm-capture.ts')).showCaptureFailure,
  'capture-done': async () => (await import('./capture/confirm-capture.ts')).showCaptured,
}

async function runWizard(start: WizardStart, context: WizardContext): Promise<'quit' | 'reboot'> {
  let state = openState(start)
  for (;;) {
    const show = await SCREENS[state.screen]()
    const step = await show(state, context)
    const then = context.signal.aborted ? 'quit' : next(state, step)
    if (then === 'quit') return then
    if (then === 'reboot') {
      const refusal = await restart(context)
      if (refusal === null) return then
      state = { ...state, notice: refusal }
    } else {
      state = then
    }
  }
}

/** Null: it is under way. */
async function restart({ reboot }: WizardContext): Promise<string | null> {
  if (reboot === null) return 'this machine is not restarted from here'
  const outcome = await reboot()
  return outcome.ok ? null : `the restart failed: ${outcome.refusal}`
}

async function flash(state: WizardState, context: WizardContext): Promise<WizardStep> {
  const choices = choiceOf(state)
  if (choices === null) return { step: 'back' }
  const { runChosen } = await import('./screens/flashing.ts')
  return { step: 'ended', ...(await runChosen(state, choices, context)) }
}

// Opens the wizard's context: the terminal at once, services when a screen first needs them.

/** `FLASHER_LIVE=1`: the machine was booted to be flashed, and may be restarted. */
interface WizardEnvironment extends TerminalEnvironment {
  /** As Node names it: `x64`, `arm64`. */
  readonly arch: string
}

/** `mac` null: that of this machine's first network card is shown. */
async function openWizardContext(
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
    const { openOfferedDisks } = await import('#engine/disk/disks.ts')
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
    reboot: reboots ? () => rebootHost(env) : null,
    ask(subject) {
      painter.forget()
      return ask(subject, { stdin, stdout: out, style, painter }, signal)
    },
    listLocal: () => listImages(imageRoot),
    async loadCatalog(source, until) {
      const { createCatalogSources } = await import('#engine/catalog/catalog-manifests.ts')
      return createCatalogSources({ env })(source, until)
    },
    async loadHooks() {
      const { createStandaloneHooks } = await import('#flasher/order/remote-hooks.ts')
      return createStandaloneHooks(remoteEnvironment)
    },
    async loadRemote(): Promise<RemoteDependencies> {
      const { createRemoteDependencies } = await import('#flasher/order/remote-hooks.ts')
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

async function rebootHost(env: Environment) {
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
