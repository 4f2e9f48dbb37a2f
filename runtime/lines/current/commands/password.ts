/** `flasher-web password`: sets a new administrator password and ends all sessions. */
import { Fault } from '../../../core/foundation/fault.ts'
import { renderOrigin } from '../../../core/config/settings-parser.ts'
import {
  createPasswords,
  generatePassword,
  hashPassword,
} from '../../../services/access/passwords.ts'
import { replaceSecret } from '../../../services/access/secret.ts'
import { prepareStateDir } from '../../../services/config/state-dirs.ts'
import { readHiddenLine } from '../../../terminal/prompt/hidden-line.ts'
import { decideFolders, readConfiguration, type LineConfig } from '../assembly/configuration.ts'
import { SUCCESS } from '../../../core/command/server-exit.ts'
import type { ProcessEnvironment } from '../../../program/process-environment.ts'
import type { Arguments } from '../../../core/command/arguments.ts'

export async function changePassword(
  environment: ProcessEnvironment,
  given: Arguments,
): Promise<number> {
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
  for (const key of ['password', 'password_hash'] as const) {
    const origin = config.originOf('admin', key)
    if (config.current().admin[key].trim() === '' || origin === null) continue
    throw new Fault('misuse', `the password is set by ${renderOrigin(origin)}: change it there`, {
      hint: 'Or remove it there and run this command again.',
    })
  }
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

const MIN_LENGTH = 8

async function askPassword({ stdin, stderr }: ProcessEnvironment): Promise<string> {
  const password = await readHiddenLine(stdin, stderr, 'New password: ')
  if ([...password].length < MIN_LENGTH) {
    throw new Fault('misuse', `the password needs at least ${MIN_LENGTH} characters`, {
      hint: '--generate generates one.',
    })
  }
  if (stdin.isTTY === true) {
    const again = await readHiddenLine(stdin, stderr, 'Repeat password: ')
    if (again !== password) throw new Fault('misuse', 'the two passwords differ')
  }
  return password
}
