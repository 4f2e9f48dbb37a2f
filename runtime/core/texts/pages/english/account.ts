/** The account page: password, sessions, tokens, in English. */
export const ACCOUNT = {} as const
