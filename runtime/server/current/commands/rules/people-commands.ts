/** The commands about people who log in with a name, as a part of the command table of `flasher-web`. */
import type { Command } from '#kit/terminal/command/rules/command.ts'
import { ROLES } from '#kit/web/answers/rules/rights.ts'
import { CONFIG, JSON_FLAG } from '#kit/terminal/command/rules/server-command.ts'

const PERSON = {
  value: { name: 'NAME', completes: 'nothing' },
  help: 'the name with which the person logs in',
} as const
const ROLE = {
  value: { name: 'ROLE', completes: 'choices', choices: ROLES },
  help: 'look (see, change nothing), operate (change and flash machines) or administrate (everything)',
} as const

export const GENERATE = {
  name: 'generate',
  value: null,
  help: 'generate one and print it',
} as const

const LABEL = {
  name: 'label',
  value: { name: 'LABEL', completes: 'nothing' },
  repeatable: true,
  help: 'a label of the scope: only machines with one of them are seen',
} as const

const ALL_MACHINES = {
  name: 'all-machines',
  value: null,
  help: 'end the scope: the person sees all machines',
} as const

const ASKS = 'Asks for it twice on a terminal, otherwise reads one line from standard input.'
const RUNNING = 'Works while the server is running.'

export const PEOPLE_COMMANDS = {
  'people-list': {
    words: ['people', 'list'],
    summary: 'list the people who log in with a name',
    about: [`Prints their names and roles. ${RUNNING}`],
    positionals: [],
    flags: [JSON_FLAG, CONFIG],
    examples: [{ line: 'flasher-web people list', does: 'see who may do what' }],
  },
  'people-add': {
    words: ['people', 'add'],
    summary: 'add a person who logs in with a name, and set the password',
    about: [`${ASKS} ${RUNNING}`],
    positionals: [PERSON, ROLE],
    flags: [LABEL, GENERATE, CONFIG],
    examples: [
      { line: 'flasher-web people add anna operate', does: 'let anna change and flash machines' },
      {
        line: 'flasher-web people add otto operate --label lab',
        does: 'let otto see and change the machines with the label lab alone',
      },
    ],
  },
  'people-role': {
    words: ['people', 'role'],
    summary: 'give a person another role and scope and end their sessions',
    about: [
      `It counts at their next request. The scope stays unless --label or --all-machines says another. ${RUNNING}`,
    ],
    positionals: [PERSON, ROLE],
    flags: [LABEL, ALL_MACHINES, CONFIG],
    examples: [{ line: 'flasher-web people role anna look', does: 'let anna only look' }],
  },
  'people-password': {
    words: ['people', 'password'],
    summary: 'set a new password of a person and end their sessions',
    about: [`${ASKS} ${RUNNING}`],
    positionals: [PERSON],
    flags: [GENERATE, CONFIG],
    examples: [
      {
        line: 'flasher-web people password anna --generate',
        does: 'replace a lost password and print the new one',
      },
    ],
  },
  'people-remove': {
    words: ['people', 'remove'],
    summary: 'remove a person, end their sessions and revoke their tokens',
    about: [`It counts at their next request. ${RUNNING}`],
    positionals: [PERSON],
    flags: [CONFIG],
    examples: [{ line: 'flasher-web people remove anna', does: 'let anna in no more' }],
  },
} as const satisfies Readonly<Record<string, Command>>
