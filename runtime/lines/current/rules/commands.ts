/** Current line: the command table of `flasher-web`; its parser, help and manual are made from it. */
import type { Command, CommandLine, Value } from '../../../core/command/command.ts'
import { SERVER_ENVIRONMENT, SOURCE_ENVIRONMENT } from '../../../core/command/environment.ts'
import { CONFIG, CONFIG_FILES, JSON_FLAG } from '../../../core/command/server-command.ts'
import { listExitCodes } from '../../../core/command/server-exit.ts'
import { createTextCommands } from '../../../core/command/text-commands.ts'

const FOLDER: Value = { name: 'DIR', completes: 'folder' }

const SERVE = {
  words: ['serve'],
  summary: 'run the server (what happens without a command, too)',
  about: [
    'Serves boot scripts, boot files, the catalog, the pages and the programming interface until SIGTERM or SIGINT. SIGHUP reads the configuration again.',
    'At the first start without a configured password one is made and printed, once.',
  ],
  positionals: [],
  flags: [CONFIG],
  examples: [
    { line: 'flasher-web', does: 'with the configuration below /etc/flasher' },
    { line: 'flasher-web --config ./flasher.toml', does: 'with one file and nothing else' },
  ],
} as const satisfies Command

const EXPORT = {
  words: ['export'],
  summary: 'write the fleet as an export bundle into a folder',
  about: [
    'Writes DIR/inventory.json: every machine with its disks and hardware, no assignments, no images. Works beside a running server.',
  ],
  positionals: [{ value: FOLDER, help: 'the folder, made where it is missing' }],
  flags: [CONFIG],
  examples: [{ line: 'flasher-web export /srv/fleet', does: 'a bundle for another server' }],
} as const satisfies Command

const IMPORT = {
  words: ['import'],
  summary: 'take the machines of an export bundle into the fleet',
  about: [
    'Every machine of the bundle starts over: mode flasher-inventory, no image, no disk, no labels. Other machines stay. Works beside a running server.',
  ],
  positionals: [{ value: FOLDER, help: 'the folder with inventory.json' }],
  flags: [CONFIG],
  examples: [{ line: 'flasher-web import /srv/fleet', does: 'what another server exported' }],
} as const satisfies Command

const BACKUP = {
  words: ['backup'],
  summary: 'make a backup now',
  about: ['A backup holds the export bundle and a full copy of the database.'],
  positionals: [],
  flags: [CONFIG],
  examples: [{ line: 'flasher-web backup', does: 'one more beside the scheduled ones' }],
} as const satisfies Command

const RESTORE = {
  words: ['restore'],
  summary: 'put a backup in the place of the present state',
  about: [
    'Brings back machines with their assignments, labels and settings, as they were. The present database is kept beside as .bak. The server must not be running.',
    'Without an argument it lists the backups on the terminal, newest first, to choose one with the arrow keys.',
  ],
  positionals: [
    {
      value: { name: 'ID|FILE', completes: 'file' },
      optional: true,
      help: 'a backup by its name, or a database file of one; absent: it is asked for',
    },
  ],
  flags: [CONFIG],
  examples: [
    { line: 'flasher-web restore', does: 'choose among the backups' },
    { line: 'flasher-web restore 2026-11-21T03-00-00Z', does: 'the state of that night' },
  ],
} as const satisfies Command

const PASSWORD = {
  words: ['password'],
  summary: 'set a new administrator password and end all sessions',
  about: [
    'Asks for it twice on a terminal, else reads one line from standard input. A running server takes it up at once.',
  ],
  positionals: [],
  flags: [
    { name: 'generate', value: null, help: 'make one up and print it' },
    {
      name: 'print',
      value: null,
      help: 'print the hash for [admin] password_hash and change nothing',
    },
    CONFIG,
  ],
  examples: [
    { line: 'flasher-web password', does: 'asks, and stores a hash' },
    { line: 'flasher-web password --generate', does: 'when it was lost' },
  ],
} as const satisfies Command

const CONFIG_SHOW = {
  words: ['config', 'show'],
  summary: 'show every setting, its value and where it comes from',
  about: ['Secrets are shown as set or unset.'],
  positionals: [],
  flags: [JSON_FLAG, CONFIG],
  examples: [{ line: 'flasher-web config show --json', does: 'for a program' }],
} as const satisfies Command

const CONFIG_CHECK = {
  words: ['config', 'check'],
  summary: 'look for mistakes in the configuration',
  about: ['Prints what is wrong with its place. Exit code 2: the server would not start with it.'],
  positionals: [],
  flags: [CONFIG],
  examples: [{ line: 'flasher-web config check && systemctl reload flasher-web', does: 'safely' }],
} as const satisfies Command

const CONFIG_REFERENCE = {
  words: ['config', 'reference'],
  summary: 'print what every setting means (docs/settings.md)',
  about: ['Markdown, made from the same table that reads the configuration.'],
  positionals: [],
  flags: [CONFIG],
  examples: [{ line: 'flasher-web config reference | less', does: 'all settings and defaults' }],
} as const satisfies Command

export const COMMANDS = {
  serve: SERVE,
  export: EXPORT,
  import: IMPORT,
  backup: BACKUP,
  restore: RESTORE,
  password: PASSWORD,
  'config-show': CONFIG_SHOW,
  'config-check': CONFIG_CHECK,
  'config-reference': CONFIG_REFERENCE,
} as const

export type CommandName = keyof typeof COMMANDS

const TEXTS = createTextCommands('flasher-web', [CONFIG])

export const COMMAND_LINE: CommandLine = {
  program: 'flasher-web',
  summary: 'the machine server',
  about: [
    'Network-boots machines, shows them in a browser, and has them write images onto their disks.',
  ],
  commands: [...Object.values(COMMANDS), TEXTS.completion, TEXTS.manual],
  exitCodes: listExitCodes('server'),
  environment: [
    ['FLASHER_<SECTION>_<KEY>', 'one setting, for example FLASHER_SERVER_PORT'],
    ...SERVER_ENVIRONMENT,
    ...SOURCE_ENVIRONMENT,
  ],
  files: [...CONFIG_FILES, ['<state_dir>/state.db', 'machines, events and what pages save']],
  revised: '2026-11-22',
}
