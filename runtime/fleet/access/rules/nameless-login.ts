/** Decides whether the administrator may log in with the password alone, beside people with names. */

/** `[people] nameless_login` */
export type NamelessLogin = 'always' | 'off'

interface OtherWays {
  /** People who administrate and can log in now: with a password of their own, or with a provider that answers. */
  readonly administrators: number
}

/** Where nothing else is configured, nobody could administrate without it, so it stays. */
export function allowsNamelessLogin(wanted: NamelessLogin, { administrators }: OtherWays): boolean {
  return wanted === 'always' || administrators === 0
}
