/** Decides whether the administrator may log in with the password alone, beside people with names. */

export type NamelessLogin = 'always' | 'off'

interface OtherWays {
  /** People who administrate and can log in now (own password, or a provider that answers). */
  readonly administrators: number
}

export function allowsNamelessLogin(wanted: NamelessLogin, { administrators }: OtherWays): boolean {
  return wanted === 'always' || administrators === 0
}
