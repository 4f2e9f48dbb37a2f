/** `flasher` without a command: the wizard, alone or driven by a server ("Wizard command line"). */
import { parseArguments, renderMisuse } from '../../../core/command/arguments.ts'
import type { CommandLine } from '../../../core/command/command.ts'
import { parseMac } from '../../../core/machine/mac.ts'
import { accept, refuse, type Result } from '../../../core/foundation/result.ts'
import { parseServerAddress } from '../../../core/net/server-address.ts'
import type { Environment } from '../../../services/host/shell.ts'
import { createLog } from '../../../terminal/text/log.ts'
import { decideTerminalStyle } from '../../../terminal/text/terminal-style.ts'
import type { WizardContext } from './screens/wizard-context.ts'
import { openWizardContext, type ProcessEnvironment } from './open-context.ts'
import { WIZARD } from './options.ts'
import type { Hooks, Start } from './flow/start.ts'
import { runWizard } from './wizard.ts'

const SUCCESS = 0
const FAILED = 1
const MISUSED = 2
/** As a shell reports a program that SIGINT ended. */
const CANCELLED = 130

/** Only what reads the arguments: help is the whole program's. */
const LINE: CommandLine = {
  program: 'flasher',
  summary: WIZARD.summary,
  about: [],
  commands: [],
  main: WIZARD,
  exitCodes: [],
  environment: [],
  files: [],
  revised: '',
}

/** Returns the exit code. */
export async function wizard(environment: ProcessEnvironment): Promise<number> {
  const { env, argv, stdin, stdout, stderr } = environment
  const log = createLog({
    program: 'flasher',
    stderr,
    look: decideTerminalStyle(env, stderr.isTTY),
  })
  const hasTerminal = stdin.isTTY && stdout.isTTY
  const request = readRequest(argv, hasTerminal)
  if (!request.ok) {
    log.fail(request.refusal.message, request.refusal.hint)
    return MISUSED
  }
  const given = request.value
  const context = await openWizardContext(environment, given.get('mac') ?? null)
  try {
    const beginning = await begin(given, context, env)
    if (beginning.kind === 'exit') return beginning.code
    const { start, hooks } = beginning
    if (!hasTerminal) {
      // There may be a screen without a keyboard.
      context.painter.leave()
      log.fail(start.notice ?? 'the server leaves it to the wizard what is flashed', NO_WIZARD)
      return environment.signal.aborted ? CANCELLED : FAILED
    }
    await runWizard(start, takeOver(context, start, hooks))
    return SUCCESS
  } finally {
    context.painter.leave()
  }
}

type Flags = ReadonlyMap<string, string>

/** Without a terminal there must be a server that decides: what it decides needs nobody. */
function readRequest(argv: readonly string[], hasTerminal: boolean): Result<Flags, Misuse> {
  const reading = parseArguments(LINE, argv)
  if (!reading.ok) return refuse({ message: renderMisuse(reading.refusal), hint: HELP })
  const flags = readFlags(reading.value.kind === 'run' ? reading.value.argv : [])
  const mac = flags.get('mac') ?? null
  if (hasTerminal) return accept(flags)
  if (mac === null) return refuse({ message: 'the wizard needs a terminal', hint: FLASH })
  if (!parseMac(mac).ok) {
    return refuse({ message: `--mac ${JSON.stringify(mac)} is no MAC address`, hint: SPELLING })
  }
  const server = flags.get('server') ?? WIZARD.flags[0].value.default
  if (parseServerAddress(server).ok) return accept(flags)
  return refuse({ message: `--server ${JSON.stringify(server)} is no address`, hint: ADDRESS })
}

interface Misuse {
  readonly message: string
  readonly hint: string
}

const HELP = '"flasher --help" says what there is.'
const FLASH = 'Without one: "flasher flash --image IMAGE --target DISK --yes".'
const SPELLING = 'Write it like 52:54:00:12:34:56.'
const ADDRESS = 'Write it like http://10.0.0.1:8080.'
const NO_WIZARD = 'The wizard, which goes on from here, needs a terminal.'

/** From the unambiguous spelling that `parseArguments` gives. */
const readFlags = (argv: readonly string[]): Flags =>
  new Map(
    argv.flatMap((word) => {
      const [, name, value] = /^--([a-z]+)=(.*)$/s.exec(word) ?? []
      return name === undefined || value === undefined ? [] : [[name, value] as const]
    }),
  )

async function begin(given: Flags, context: WizardContext, env: Environment) {
  const mac = given.get('mac')
  if (mac === undefined) return beginAlone(given, context, env)
  const [{ drive }, { createDrivenScreen }, parts] = await Promise.all([
    import('./driven/remote.ts'),
    import('./screens/driven-screen.ts'),
    context.loadRemote(),
  ])
  const server = given.get('server') ?? WIZARD.flags[0].value.default
  return drive(createDrivenScreen(context, server), { mac, server }, parts)
}

async function beginAlone(given: Flags, context: WizardContext, env: Environment) {
  const catalog = given.get('catalog') ?? null
  const server = given.get('server') ?? null
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
