/** Logging in with an OpenID provider. */
export const PROVIDER = {
  button: 'Log in with {name}',
  or: 'or with a password',
  away: '{name} cannot be used at the moment: {detail}.',
  none: 'no provider is set with which people log in',
  tooLong: 'the answer of the provider is too long',
  onward: 'Logging in with {name}',
  leaving: 'Logging out at {name}',
  continue: 'Continue',
  ways: 'Where to go',
  again: 'Log in as somebody else',
  back: 'Back to the login page',
  said: 'Your groups',
  nothing: 'none',
  missing: 'Not sent',
  leftOut: 'Too many groups',
  leftOutHint:
    'You are in so many groups that the provider left the claim {claim} out. It has to send fewer of them, or app roles.',
  refused: {
    'no-role': {
      title: 'No access',
      text: '{name} knows you as {as}, but none of your groups has a role on this server.',
      event: 'no role',
    },
    blocked: {
      title: 'Blocked',
      text: '{name} knows you as {as}, and an administrator of this server has blocked you.',
      event: 'blocked',
    },
    'too-many': {
      title: 'No room',
      text: '{name} knows you as {as}, and you may log in, but this server knows too many people already.',
      event: 'too many people',
    },
    'scope-long': {
      title: 'Too many labels',
      text: '{name} knows you as {as}, and your groups give more labels than a session can have.',
      event: 'too many labels',
    },
    ask: 'Ask an administrator of this server, then log in again.',
    askSomebody: 'Ask {contact}, then log in again.',
  },
  errors: {
    unknown:
      'This login was begun in another browser, more than 10 minutes ago, or was finished already. Begin again at {address}.',
    away: '{name} does not answer as it should: {detail}. Try again in a minute.',
    settings:
      '{name} and this server do not fit together: {detail}. An administrator can change it.',
    denied: '{name} did not log you in: {detail}.',
    spent: '{name} does not take this login any more: {detail}. Begin again.',
    doubtful: 'What {name} said could not be verified: {detail}. Begin again.',
  },
} as const
