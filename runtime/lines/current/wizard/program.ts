/** `flasher` without a command: the wizard, alone or driven by a server ("Wizard command line"). */
import type { Arguments } from '../../../core/command/arguments.ts'
import { Fault } from '../../../core/foundation/fault.ts'
import { parseMac } from '../../../core/machine/mac.ts'
import { parseServerAddress } from '../../../core/net/server-address.ts'
import type { Environment } from '../../../services/host/shell.ts'
import { decideTerminalStyle } from '../../../terminal/text/terminal-style.ts'
import type { WizardContext } from './screens/wizard-context.ts'
import { openWizardContext, type ProcessEnvironment } from './open-context.ts'
import { DEFAULT_SERVER } from './options.ts'
import type { Hooks, Start } from './flow/start.ts'
import { runWizard } from './wizard.ts'

const SUCCESS = 0
const FAILED = 1
/** As a shell reports a program that SIGINT ended. */
const CANCELLED = 130

/** Returns the exit code. */
export async function wizard(environment: ProcessEnvironment, given: Arguments): Promise<number> {
  const { stdin, stdout, signal } = environment
  const hasTerminal = stdin.isTTY && stdout.isTTY
  if (!hasTerminal) requireServer(given)
  const context = await openWizardContext(environment, given.values['mac'] ?? null)
  try {
    const beginning = await begin(given, context, environment.env)
    if (beginning.kind === 'exit') return beginning.code
    const { start, hooks } = beginning
    if (!hasTerminal) {
      // There may be a screen without a keyboard.
      context.painter.leave()
      const message = start.notice ?? 'the server leaves it to the wizard what is flashed'
      const { createLog } = await import('../../../terminal/text/log.ts')
      const look = decideTerminalStyle(environment.env, environment.stderr.isTTY)
      createLog({ program: 'flasher', stderr: environment.stderr, look }).fail(message, NO_WIZARD)
      return signal.aborted ? CANCELLED : FAILED
    }
    await runWizard(start, takeOver(context, start, hooks))
    return SUCCESS
  } finally {
    context.painter.leave()
  }
}

/** Without a terminal there must be a server that decides: what it decides needs nobody. */
function requireServer({ values }: Arguments): void {
  const { mac, server = DEFAULT_SERVER } = values
  if (mac === undefined) {
    throw refuse(
      'the wizard needs a terminal',
      'Without one: "flasher flash --image IMAGE --target DISK --yes".',
    )
  }
  if (!parseMac(mac).ok) {
    throw refuse(
      `--mac ${JSON.stringify(mac)} is no MAC address`,
      'Write it like 52:54:00:12:34:56.',
    )
  }
  if (!parseServerAddress(server).ok) {
    throw refuse(
      `--server ${JSON.stringify(server)} is no address`,
      'Write it like http://10.0.0.1:8080.',
    )
  }
}

const NO_WIZARD = 'The wizard, which goes on from here, needs a terminal.'

const refuse = (message: string, hint: string) => new Fault('misuse', message, { hint })

type Beginning =
  | { readonly kind: 'exit'; readonly code: number }
  | { readonly kind: 'interactive'; readonly start: Start; readonly hooks: Hooks | null }

async function begin(
  { values }: Arguments,
  context: WizardContext,
  env: Environment,
): Promise<Beginning> {
  const { mac, server = DEFAULT_SERVER } = values
  if (mac === undefined) return beginAlone(values, context, env)
  const [{ drive }, { createDrivenScreen }, parts] = await Promise.all([
    import('./driven/remote.ts'),
    import('./screens/driven-screen.ts'),
    context.loadRemote(),
  ])
  return drive(createDrivenScreen(context, server), { mac, server }, parts)
}

async function beginAlone(
  values: Arguments['values'],
  context: WizardContext,
  env: Environment,
): Promise<Beginning> {
  const { catalog = null, server = null } = values
  // The screen of the images says why they cannot be listed.
  const hasImages = (await context.listLocal().catch(() => [])).length > 0
  const screen = catalog !== null || hasImages ? 'image' : 'catalog'
  // With FLASHER_LIVE_MAC another console follows the server, and flashes of this one are reported.
  const isAlone = server !== null && (env['FLASHER_LIVE_MAC'] ?? '') === ''
  const notices = [
    ...(isAlone ? [renderUnfollowed(server)] : []),
    ...(context.isRoot ? [] : [ROOTLESS]),
  ]
  const notice = notices.join(' ') || null
  const identity = { ...context.drawing.setting.identity, server }
  const start: Start = { screen, catalog, notice, identity }
  return { kind: 'interactive' as const, start, hooks: null }
}

const ROOTLESS = 'Without root, disks can be looked at but not written.'

const renderUnfollowed = (server: string) =>
  `The server ${server} is not followed and flashes are not reported to it: this machine's MAC address is unknown (set --mac, or flasher.mac= on the kernel command line).`

/** The server may know more of this machine than it did itself, and flashes are reported to it. */
const takeOver = (
  context: WizardContext,
  { identity }: Start,
  hooks: Hooks | null,
): WizardContext => ({
  ...context,
  drawing: { ...context.drawing, setting: { ...context.drawing.setting, identity } },
  ...(hooks === null ? {} : { loadHooks: () => Promise.resolve(hooks) }),
})
