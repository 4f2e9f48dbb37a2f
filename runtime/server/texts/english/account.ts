/** The account page: password, session, tokens; and what roles are called. */
export const ACCOUNT = {
  logOut: 'Log out',
  session: {
    title: 'Administrator',
    address: 'Logged in from',
    end: 'Session ends',
    extended: '{time}; extended by use',
    role: 'Role',
    noRole: 'None',
    scope: 'You see',
    scopeLabels: {
      one: 'machines with the label {labels}',
      other: 'machines with one of the labels {labels}',
    },
    nothing: 'no machine: your scope has no label',
    everything: 'all machines',
    sees: 'You see {what}',
  },
  /** What each role is called, and what it permits. */
  roles: {
    look: { title: 'Look', text: 'See everything but settings, and change nothing' },
    operate: { title: 'Operate', text: 'Change, flash and turn on machines' },
    administrate: { title: 'Administrate', text: 'Everything, including settings and people' },
  },
  password: {
    title: 'Password',
    current: 'Current password',
    ofProvider: 'You log in with a provider, which alone knows your password: change it there.',
    next: 'New password',
    hint: 'At least {count} characters.',
    repeated: 'Repeat new password',
    button: 'Change password',
    note: 'All other sessions are logged out; this one stays. API tokens stay valid.',
    changed: 'Password changed. All other sessions have been logged out.',
    origin: {
      environment:
        'The password is set by the environment variable {variable}. Change it there and restart the server.',
      file: 'The password is set in {path}. Change it there; the server uses the new one when it reads its configuration again.',
      other:
        'The password is set in the configuration. Change it there; the server uses the new one when it reads its configuration again.',
      note: 'Once it is removed there, the password can be changed on this page and with {command}.',
    },
    errors: {
      wait: 'Too many attempts: try again in {seconds} s.',
      wrong: 'Wrong password.',
      elsewhere: 'The password is changed in the operating system.',
      unchanged: 'The new password is the same as the current one.',
      tooShort: 'Enter at least {count} characters.',
      tooLong: 'Enter at most {count} characters.',
      controlCharacters: 'The password may not contain control characters.',
      differs: 'The two passwords are different.',
    },
  },
  tokens: {
    title: 'API tokens',
    api: 'API documentation',
    created: 'Token created. Copy it now, it will not be shown again: {token}',
    /** `{variable}` is that of a shell. */
    use: 'Programs send it with each request. In a shell, keep it in {variable}:',
    empty: 'No tokens yet. A token gives a program limited access without your password.',
    owner: 'belongs to {name}',
    dates: 'created {created}, used {used}, expires {expires}',
    never: 'never',
    revoke: 'Revoke…',
    create: 'Create a token',
    name: 'Name',
    nameHint: 'Shown beside the events of the token.',
    scopes: 'Scopes',
    /** What each scope permits. */
    permits: {
      read: 'Read machines, images and events',
      machines: 'Change machines, but not flash them',
      flash: 'Arm machines for flashing',
      power: 'Turn machines on and off',
      admin: 'Everything, including settings and backups',
    },
    lifetime: 'Expires after',
    /** The lifetimes by number of days. */
    lifetimes: { '30': '30 days', '90': '90 days', '365': '1 year', '': 'never' },
    button: 'Create token',
    errors: {
      name: 'Enter a name of letters, digits, spaces, dots and dashes.',
      scopes: 'Select at least one of the listed scopes.',
      lifetime: 'Select when the token expires.',
      beyond: 'Your role does not permit one of these scopes.',
      taken: 'A token named {name} already exists.',
      tooMany: 'There are already {count} tokens: revoke unused ones.',
      unknown: 'That token no longer exists.',
    },
    revocation: {
      title: 'Revoke token {name}',
      question: 'Revoke the token {name}?',
      consequence:
        'Programs that use it are refused at once, and it cannot be brought back. It was last used {time}.',
      button: 'Revoke token',
    },
  },
} as const
