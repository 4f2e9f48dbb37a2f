/** Earlier line: the check of the operator's password. */
import { createPasswords } from '../../../services/access/passwords.ts'
import { decideFolders, type LineConfig } from './configuration.ts'

/** All that the server knows of passwords. */
export interface PasswordCheck {
  verifyPassword(given: string): Promise<boolean>
}

interface OpenedPassword extends PasswordCheck {
  /** Made at this start and not shown again; null: there was one. */
  readonly generated: string | null
}

export async function openPassword(config: LineConfig): Promise<OpenedPassword> {
  const passwords = createPasswords({
    path: decideFolders(config).password,
    configured: () => config.current().admin,
  })
  return { verifyPassword: passwords.check, generated: await passwords.ensure() }
}
