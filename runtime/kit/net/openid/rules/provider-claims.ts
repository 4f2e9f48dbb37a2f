/** What an OpenID provider says of a person in two answers: the ID token, and what its userinfo address adds. */

/** `iss` and `sub` are texts. */
export type ProviderClaims = Readonly<Record<string, unknown>> & {
  readonly iss: string
  readonly sub: string
}

/**
 * Joins the two; the ID token counts more. That an address is verified counts only beside the address
 * of the same answer: the other one may name another address, which anybody can set.
 */
export function joinClaims(
  token: ProviderClaims,
  userinfo: Readonly<Record<string, unknown>>,
): ProviderClaims {
  const { email_verified: _, ...joined } = { ...userinfo, ...token }
  const whole = [token, userinfo].find(
    (said) => Object.hasOwn(said, 'email') && Object.hasOwn(said, 'email_verified'),
  )
  if (whole === undefined) return joined
  return { ...joined, email: whole['email'], email_verified: whole['email_verified'] }
}
