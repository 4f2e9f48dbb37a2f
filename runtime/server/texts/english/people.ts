/** The page of people who log in with a name. */
export const PEOPLE = {
  title: 'People',
  card: {
    text: 'Who logs in with a name, and what they may do.',
    link: { one: '1 person', other: '{count} people' },
  },
  list: 'People who log in with a name',
  empty: {
    title: 'Nobody logs in with a name yet',
    text: 'Add people, and every event, flash and token names who it was. The administrator password stays.',
  },
  administrator: {
    always: 'The administrator still logs in with the password alone.',
    off: 'Nobody logs in with the administrator password alone while somebody here administrates.',
    setting: 'Change it under {setting}.',
  },
  events: 'Events',
  role: 'Role',
  roleOf: 'Role of {name}',
  scope: 'Scope',
  scopeOf: 'Scope of {name}',
  scopeHint:
    'Labels with commas between them: only machines with one of them are seen and changed. Empty: all machines; a hyphen alone: none. Whoever administrates sees all.',
  everything: 'all machines',
  noRole: 'No role',
  save: 'Save role',
  password: {
    summary: 'New password',
    field: 'New password of {name}',
    hint: 'At least {count} characters. All sessions of {name} end.',
    button: 'Set password',
  },
  added: 'Added {time}',
  /** This is said of people whom a provider lets in. */
  provider: {
    role: '{role}, says {provider}.',
    scope: 'Machines: {labels}.',
    noMachine: 'none',
    noRole: 'No role from {provider}.',
    times: 'Last login {seen}, added {added}',
    never: 'never',
    tokens: 'Tokens with that role, also while nobody is logged in: {names}',
    voidTokens: 'Tokens that are refused at the moment: {names}',
    blocked: 'Blocked',
    block: 'Block',
    unblock: 'Unblock',
    comesBack:
      'The provider can let them in again with their next login. Block them instead to keep them out.',
  },
  add: {
    title: 'Add a person',
    name: 'Name',
    nameHint: 'What they type to log in: lowercase letters, digits and . _ - + @',
    password: 'Password',
    button: 'Add person',
  },
  remove: {
    button: 'Remove…',
    title: 'Remove {name}',
    question: 'Remove {name}?',
    consequence:
      'Their sessions end with their next request, and their tokens are revoked. Events and runs keep their name.',
    confirm: 'Remove person',
  },
  done: {
    added: '{name} was added.',
    role: 'The role and scope of {name} were saved; all of their sessions have ended.',
    password: 'The password of {name} was changed; all of their sessions have ended.',
    removed: '{name} was removed.',
    blocked: '{name} is blocked: their sessions have ended, and their tokens are refused.',
    unblocked: '{name} may log in again, and has no role until then.',
  },
  errors: {
    'name-shape':
      'Enter a name of lowercase letters, digits and . _ - + @, of at most 64 characters.',
    'name-reserved': 'That name has another meaning in events: use another one.',
    'name-taken': 'That name is in use.',
    'too-many': 'There are {count} people already.',
    'too-short': 'Enter at least {count} characters.',
    'too-long': 'Enter at most {count} characters.',
    'scope-label': 'A label in a scope has letters, digits, spaces and . _ - as those of machines.',
    'scope-long':
      'The labels of a scope may have {count} characters together, with three more for each label: use fewer or shorter ones.',
    'control-characters': 'The password may not contain control characters.',
    differs: 'The two passwords are different.',
    unknown: 'That person was removed already.',
    'of-provider': 'The provider knows their password and says which role they have.',
    'has-password': 'They have a password here: remove them to keep them out.',
    role: 'Select one of the roles.',
  },
} as const
