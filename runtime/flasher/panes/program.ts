/** `flasher-tui`: opens the terminal, and ends it in a state that others can use ("flasher-tui"). */
import type { Arguments } from '#kit/terminal/command/rules/arguments.ts'
import type { CommandLine } from '#kit/terminal/command/rules/command.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { resolveImageRoot } from '#engine/image/image-folder.ts'
import { parseMac, type Mac } from '#kit/net/rules/mac.ts'
import { parseServerAddress } from '#kit/net/rules/server-address.ts'
import { findOwnCard } from '#fleet/boot/host-addresses.ts'
import { readVersion } from '#kit/host/package-manifest.ts'
import { findServer } from '#flasher/link/server-site.ts'
import type { TerminalEnvironment } from '#kit/terminal/command/program.ts'
import { createPainter } from '#kit/terminal/prompt/painter.ts'
import { encodeFor, encodeOutput } from '#kit/terminal/text/encoding.ts'
import { createInk } from '#kit/terminal/text/ink.ts'
import { createLog } from '#kit/terminal/text/log.ts'
import { decideTerminalStyle } from '#kit/terminal/text/terminal-style.ts'
import { EXIT, FAILED, SUCCESS } from '#flasher/commands/rules/exit-codes.ts'
import { openState, type PanesSetting, type PanesState } from './flow/state.ts'
import { createTuiServices } from './services.ts'
import { runPanes } from './session.ts'

export interface TuiEnvironment extends TerminalEnvironment {
  /** Why a person is asked; absent: the person asked for it. */
  readonly reason?: string | null
  /** Why the server was not notified of an earlier flash. */
  readonly unsent?: string
}

/** Returns the exit code. Rejects with a Fault `misuse` where there is no terminal. */
export async function tui(
  environment: TuiEnvironment,
  given: Arguments,
  { program }: CommandLine,
): Promise<number> {
  const { env, stdin, stdout, stderr, isRoot, signal, now, reason = null, unsent } = environment
  const { bases, mac } = readOptions(given)
  if (!stdin.isTTY || !stdout.isTTY) {
    const hint = 'Without one: "flasher flash --image IMAGE --target DISK --yes".'
    throw new Fault('misuse', 'flasher-tui needs a terminal', { hint })
  }
  const server = await chooseServer(bases, environment)
  const imageRoot = resolveImageRoot(null, env)
  const setting: PanesSetting = {
    version: await readVersion(),
    source: server === null ? imageRoot : `${server}/images`,
    server,
    mac,
    address: findOwnCard(mac).address,
    isRoot,
  }
  const services = createTuiServices({ env, isRoot, signal, imageRoot, server, mac })
  const style = decideTerminalStyle(env, stdout.isTTY)
  const ink = createInk(style)
  const opening = openState(setting, { reason, unsent })
  if (!style.tty) {
    const { runPlain } = await import('./plain.ts')
    const out = encodeOutput(stdout, env)
    return await runPlain(opening.state, services, { stdin, stdout: out, style, signal, now })
  }
  const painter = createPainter(stdout, encodeFor(env))
  const paneStyle = { ink, unicode: style.unicode }
  try {
    const state = await runPanes(opening, services, {
      stdin,
      painter,
      style: paneStyle,
      signal,
      now,
    })
    painter.leave()
    const log = createLog({ program, stderr, style: decideTerminalStyle(env, stderr.isTTY) })
    return report(state, log, signal)
  } finally {
    painter.leave()
  }
}

interface Options {
  /** The best first; null: standalone. */
  readonly bases: readonly string[] | null
  readonly mac: Mac | null
}

/** A MAC address without a server notifies nobody. */
function readOptions({ values: { server, mac } }: Arguments): Options {
  const card = mac === undefined ? null : readMac(mac)
  if (server === undefined) return { bases: null, mac: null }
  const bases = parseServerAddress(server)
  if (bases.ok) return { bases: bases.value, mac: card }
  const hint = 'Write it like http://10.0.0.1:8080.'
  throw new Fault('misuse', `--server ${JSON.stringify(server)} is no address`, { hint })
}

function readMac(text: string): Mac {
  const mac = parseMac(text)
  if (mac.ok) return mac.value
  const hint = 'Write it like 52:54:00:12:34:56.'
  throw new Fault('misuse', `--mac ${JSON.stringify(text)} is no MAC address`, { hint })
}

/** The first where none answers: the left pane says why. */
async function chooseServer(
  bases: Options['bases'],
  { env, signal }: TuiEnvironment,
): Promise<string | null> {
  const [first = null, ...others] = bases ?? []
  if (bases === null || others.length === 0) return first
  return (await findServer(bases, { env, signal })) ?? first
}

/** Repeats the screen's last message below it, where it still counts. */
function report(
  { signal, dialog }: PanesState,
  log: ReturnType<typeof createLog>,
  ending: AbortSignal,
): number {
  if (signal.kind === 'failed') log.fail(`the server was not notified: ${signal.reason}`)
  if (dialog?.kind === 'ended' && dialog.outcome.kind !== 'done') {
    log.fail(dialog.outcome.reason, dialog.outcome.leaves)
    return ending.aborted ? EXIT.cancelled : FAILED
  }
  return ending.aborted ? EXIT.cancelled : SUCCESS
}
