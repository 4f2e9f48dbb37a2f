/** Checks the operating-system password of the user who runs the server, through PAM's own helper. */
import { readFile } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import {
  encodePassword,
  NO_PASSWORD,
  parseAccountStatus,
  parseNoNewPrivileges,
  parseVerdict,
} from './rules/person.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { toolMissing, type Shell } from '#kit/host/shell.ts'

export type SystemPassword = Awaited<ReturnType<typeof openSystemPassword>>

interface SystemPasswordOptions {
  readonly shell: Shell
  /** Empty: the system's usual path. */
  readonly helper: string
  /** Called if the right password was refused because the account has expired. */
  onExpired?(user: string): void
}

const HELPER = 'unix_chkpwd'
/** Right or wrong, every check takes at least this long: longer than most hashes. */
const MIN_CHECK_MS = 400
const MAX_CHECK_MS = 20_000

/**
 * `unix_chkpwd` may read password hashes and checks the user who starts it, so the server needs no
 * privilege of its own. Rejects with a Fault if no login could ever succeed.
 */
export async function openSystemPassword(options: SystemPasswordOptions) {
  const user = readUser()
  const helper = options.helper || HELPER
  if (!(await options.shell.has(helper))) throw toolMissing(helper)
  const tools = { ...options, helper, user }
  await checkAccount(tools)
  return { user, check: (given: string) => check(tools, given) }
}

interface PasswordTools extends SystemPasswordOptions {
  readonly user: string
}

const ask = ({ shell, helper, user }: PasswordTools, option: string, input: string) =>
  shell.run([helper, user, option], { input, timeout: MAX_CHECK_MS })

async function check(tools: PasswordTools, given: string): Promise<boolean> {
  const encoded = encodePassword(given)
  const [checked, expiry] = await Promise.all([
    encoded.ok ? ask(tools, 'nonull', encoded.value) : null,
    ask(tools, 'chkexpiry', ''),
    pause(MIN_CHECK_MS),
  ])
  if (checked === null) return false
  const verdict = parseVerdict(checked.exitCode)
  if (verdict === null) throw cannotCheck(tools.user, checked.exitCode)
  if (verdict === 'wrong') return false
  if (expiry.exitCode !== 0) tools.onExpired?.(tools.user)
  return expiry.exitCode === 0
}

/** A server that nobody can log in to does not start. */
async function checkAccount(tools: PasswordTools): Promise<void> {
  const { shell, user } = tools
  const trial = await ask(tools, 'nullok', NO_PASSWORD)
  const verdict = parseVerdict(trial.exitCode)
  if (verdict === null) throw await explainTrial(user, trial.exitCode)
  if (verdict === 'right') throw noPassword(user, 'has no password')
  // Best effort: without `passwd` a locked account is noticed at the first login.
  if (await shell.has('passwd')) {
    const status = parseAccountStatus((await shell.run(['passwd', '-S', user])).stdout)
    if (status === 'locked') throw noPassword(user, 'has no password, or its password is locked')
  }
  const expiry = await ask(tools, 'chkexpiry', '')
  if (expiry.exitCode !== 0) {
    throw new Fault('conflict', `the account ${user}, or its password, has expired`, {
      hint: `As root: passwd ${user} sets a new password, chage -E -1 ${user} removes the date.`,
    })
  }
}

function readUser(): string {
  try {
    return userInfo().username
  } catch (cause) {
    throw new Fault('conflict', `the user ${process.getuid?.()} has no account on this system`, {
      hint: 'Run the server as a user in /etc/passwd. The web interface uses that password.',
      cause,
    })
  }
}

const noPassword = (user: string, what: string) =>
  new Fault('conflict', `the account ${user} ${what}, so you could not log in`, {
    hint: `As root: passwd ${user}. The web interface takes the password of the user who runs the server.`,
  })

async function explainTrial(user: string, exitCode: number): Promise<Fault> {
  const status = await readFile('/proc/self/status', 'utf8').catch(() => '')
  if (!parseNoNewPrivileges(status)) return cannotCheck(user, exitCode)
  return new Fault('conflict', `the password of ${user} cannot be checked: no new privileges`, {
    hint: 'Set NoNewPrivileges=no in the unit, and remove options that imply it; see docs/earlier-line.md.',
  })
}

const cannotCheck = (user: string, exitCode: number) =>
  new Fault('tool-failed', `${HELPER} could not check the password of ${user} (code ${exitCode})`, {
    hint: 'Check that the helper is set-group-ID shadow, and that the account is in /etc/shadow.',
  })
