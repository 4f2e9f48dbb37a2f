/** Opens what commands that work on the state need: configuration, log, and the state itself. */
import { renderProblem } from '#kit/config/rules/settings-parser.ts'
import { readVersion } from '#kit/host/package-manifest.ts'
import { createLog } from '#kit/terminal/text/log.ts'
import { decideTerminalStyle } from '#kit/terminal/text/terminal-style.ts'
import { openVoice } from '#kit/terminal/text/voice.ts'
import { readConfiguration } from '../assembly/configuration.ts'
import { COMMAND_LINE } from './rules/commands.ts'
import { openState } from '../assembly/state.ts'
import type { ProcessEnvironment } from '#kit/program/process-environment.ts'
import type { Arguments } from '#kit/terminal/command/rules/arguments.ts'

export type Visit = Awaited<ReturnType<typeof visitState>>

interface VisitOptions {
  readonly alone?: boolean
  readonly replacesDamaged?: boolean
  readonly start?: Parameters<typeof openState>[0]['start']
}

/**
 * `alone`: no server may run. `replacesDamaged`: a backup may replace a damaged database. `start`:
 * how the shared database is joined. Rejects with a Fault.
 */
export async function visitState(
  environment: ProcessEnvironment,
  given: Arguments,
  { alone = false, replacesDamaged = false, start }: VisitOptions = {},
) {
  const { env, stderr } = environment
  const style = decideTerminalStyle(env, stderr.isTTY === true)
  const { note } = createLog({ program: COMMAND_LINE.program, stderr, style })
  const config = await readConfiguration(environment, given)
  for (const problem of config.problems()) note(renderProblem(problem))
  const release = await readVersion()
  const state = await openState({
    config,
    release,
    visit: !alone,
    replacesDamaged,
    ...(start === undefined ? {} : { start }),
    log: { warn: note },
  })
  const voice = openVoice(environment.stdout, env)
  return {
    config,
    state,
    release,
    success: voice.success,
    warn: voice.warn,
    [Symbol.asyncDispose]: () => state[Symbol.asyncDispose](),
  }
}
