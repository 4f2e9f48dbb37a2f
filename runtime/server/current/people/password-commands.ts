/** `flasher-web password`: sets a new administrator password and ends all sessions. */
import {
  checkNewPassword,
  MAX_PASSWORD_LENGTH,
  MIN_PASSWORD_LENGTH,
  type NewPasswordRefusal,
} from '#kit/web/access/rules/login-throttle.ts'
import { upperFirst } from '#kit/foundation/text.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { renderOrigin } from '#kit/config/rules/settings-parser.ts'
import { createPasswords, generatePassword, hashPassword } from '#fleet/access/passwords.ts'
import { replaceSecret } from '#kit/web/access/secret.ts'
import { prepareStateDir } from '#kit/config/state-dirs.ts'
import { readHiddenLine } from '#kit/terminal/prompt/keyboard.ts'
import {
  decideFolders,
  findPasswordOrigin,
  readConfiguration,
  type LineConfig,
} from '../assembly/configuration.ts'
import { SUCCESS } from '#kit/terminal/command/rules/command.ts'
import type { RunCommand } from '#kit/terminal/command/program.ts'
import type { ProcessEnvironment } from '#kit/program/process-environment.ts'

/**
 * The entered password, or a generated one. Ends all sessions unless the configuration sets their
 * key. `--print` stores nothing and prints the hash. Rejects with a Fault `misuse` if the
 * configuration sets the password, or the new one is unfit or not repeated alike.
 */
export const changePassword: RunCommand<ProcessEnvironment> = async (environment, given) => {
  const { stdout } = environment
  const isGenerated = given.switches.has('generate')
  if (given.switches.has('print')) {
    const password = isGenerated ? generatePassword() : await askPassword(environment)
    if (isGenerated) stdout.write(`Password: ${password}\n`)
    stdout.write(`${await hashPassword(password)}\n`)
    return SUCCESS
  }
  const config = await readConfiguration(environment, given)
  refuseConfigured(config)
  const folders = decideFolders(config)
  await prepareStateDir(folders.stateDir)
  const password = isGenerated ? generatePassword() : await askPassword(environment)
  const passwords = createPasswords({
    path: folders.password,
    configured: () => config.current().admin,
  })
  await passwords.set(password)
  if (isGenerated) stdout.write(`Password: ${password}\n`)
  stdout.write(`Its hash is in ${folders.password}.\n`)
  await endSessions(config, folders.secret, environment)
  return SUCCESS
}

/** A password in the configuration would take precedence over the new one. */
function refuseConfigured(config: LineConfig): void {
  const origin = findPasswordOrigin(config)
  if (origin === null) return
  throw new Fault('misuse', `the password is set by ${renderOrigin(origin)}. Change it there`, {
    hint: 'Or remove it there and run this command again.',
  })
}

async function endSessions(
  config: LineConfig,
  path: string,
  { stdout }: ProcessEnvironment,
): Promise<void> {
  if (config.current().server.session_secret === '') {
    await replaceSecret(path)
    stdout.write('All sessions have ended.\n')
    return
  }
  stdout.write(
    'Sessions stay valid: change server.session_secret and restart the server to end them.\n',
  )
}

const MAX_TRIES = 3

/**
 * Asks twice on a terminal, and again after a mistake; else reads one line. Rejects with a Fault
 * `misuse`.
 */
export async function askPassword({ stdin, stderr }: ProcessEnvironment): Promise<string> {
  const isTerminal = stdin.isTTY === true
  const ask = (prompt: string) => readHiddenLine(stdin, stderr, prompt)
  for (let tries = isTerminal ? MAX_TRIES : 1; ; tries -= 1) {
    const password = await ask('New password: ')
    const alone = checkNewPassword(password, null)
    const checked =
      alone.ok && isTerminal ? checkNewPassword(password, await ask('Repeat password: ')) : alone
    if (checked.ok) return password
    if (tries === 1) throw refused(checked.refusal)
    stderr.write(`${upperFirst(REFUSALS[checked.refusal])}. Try again.\n`)
  }
}

const REFUSALS: Readonly<Record<NewPasswordRefusal, string>> = {
  'too-short': `the password needs at least ${MIN_PASSWORD_LENGTH} characters`,
  'too-long': `the password may have at most ${MAX_PASSWORD_LENGTH} characters`,
  'control-characters': 'the password may not contain control characters',
  differs: 'the two passwords differ',
}

const refused = (why: NewPasswordRefusal): Fault =>
  new Fault(
    'misuse',
    REFUSALS[why],
    why === 'too-short' ? { hint: '--generate generates one.' } : {},
  )
