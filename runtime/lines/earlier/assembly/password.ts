/** Earlier line: the operator's password, which is that of the user who runs the server. */
import { openSystemPassword } from '../../../services/access/system-password.ts'
import { createShell, type Environment } from '../../../services/host/shell.ts'
import type { LineConfig } from './configuration.ts'

/** All that the server knows of passwords. */
export interface PasswordCheck {
  /** Whose password it is. */
  readonly user: string
  verifyPassword(given: string): Promise<boolean>
}

export async function openPassword(
  config: LineConfig,
  env: Environment,
  log: { warn(message: string): void },
): Promise<PasswordCheck> {
  const { user, check } = await openSystemPassword({
    shell: createShell({ env }),
    helper: config.current().admin.password_helper,
    onExpired: (name) => log.warn(`a login was refused: the account ${name} has expired`),
  })
  return { user, verifyPassword: check }
}
