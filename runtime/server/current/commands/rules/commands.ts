/** Current line: the command table of `flasher-web`; parser, help and manual are generated from it. */
import {
  textFlag,
  type Command,
  type CommandLine,
  type Value,
  ORDER_ENVIRONMENT,
  SERVER_ENVIRONMENT,
  SOURCE_ENVIRONMENT,
  createTextCommands,
  CONFIG,
  CONFIG_FILES,
  JSON_FLAG,
  listExitCodes,
} from '#kit/terminal/command/rules/command.ts'
import { FLASH_EXITS } from './flash-outcome.ts'
import { ROLES } from '#kit/web/answers/rules/rights.ts'

const PERSON = {
  value: { name: 'NAME', completes: 'nothing' },
  help: 'name to log in with',
} as const
const ROLE = {
  value: { name: 'ROLE', completes: 'choices', choices: ROLES },
  help: 'look (see, change nothing), operate (change and flash machines) or administrate (everything)',
} as const

const GENERATE = {
  name: 'generate',
  value: null,
  help: 'generate one and print it',
} as const

const LABEL = {
  name: 'label',
  value: { name: 'LABEL', completes: 'nothing' },
  repeatable: true,
  help: 'label of machines that the person sees; can be repeated',
} as const

const ALL_MACHINES = {
  name: 'all-machines',
  value: null,
  help: 'let the person see all machines',
} as const

const ASKS = 'Asks for it twice on a terminal, otherwise reads one line from standard input.'
const RUNNING = 'Works while the server is running.'

const PEOPLE_COMMANDS = {
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
        does: 'let otto see and change only machines with the label lab',
      },
    ],
  },
  'people-role': {
    words: ['people', 'role'],
    summary: 'give a person another role and scope and end their sessions',
    about: [
      `Takes effect at once. Machines stay the same unless you give --label or --all-machines. ${RUNNING}`,
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
    about: [`Takes effect at once. ${RUNNING}`],
    positionals: [PERSON],
    flags: [CONFIG],
    examples: [{ line: 'flasher-web people remove anna', does: 'no longer let anna log in' }],
  },
} as const satisfies Readonly<Record<string, Command>>

const FOLDER: Value = { name: 'DIR', completes: 'folder' }

export const COMMANDS = {
  serve: {
    words: ['serve'],
    summary: 'run the server (the default command)',
    about: [
      'Serves boot scripts, boot files, the catalog, the web pages and the API until SIGTERM or SIGINT. SIGHUP reloads the configuration.',
      'On the first start, if no password is configured, one is generated and printed once.',
    ],
    positionals: [],
    flags: [CONFIG],
    examples: [
      { line: 'flasher-web', does: 'use the configuration in /etc/flasher' },
      { line: 'flasher-web --config ./flasher.toml', does: 'use this file only' },
    ],
  },
  flash: {
    words: ['flash'],
    summary: 'have a running server flash a machine, and wait for it',
    about: [
      'For scripts: asks a server over its API with the token in FLASHER_TOKEN (scope flash, with --power also power). Prints the outcome on stdout and the progress on stderr. If you stop the program, the flash continues.',
      'With --until booted it waits until the new system is running. This requires [proof] enabled on the server.',
    ],
    positionals: [
      { value: { name: 'MAC', completes: 'nothing' }, help: 'the MAC address of the machine' },
    ],
    flags: [
      {
        name: 'server',
        value: { name: 'URL', completes: 'nothing' },
        help: 'the address of the server (default: http://127.0.0.1:8080, or the port of --config)',
      },
      textFlag('image', 'NAME|REF', 'the image to assign first (default: the current one)'),
      textFlag('disk', 'SERIAL', 'the disk to assign first (default: the current one)'),
      { name: 'wait', value: null, help: 'wait for the end of the flash' },
      {
        name: 'until',
        value: {
          name: 'WHAT',
          completes: 'choices',
          choices: ['flashed', 'booted'],
          default: 'flashed',
        },
        help: 'what to wait for; booted implies --wait',
      },
      {
        name: 'limit',
        value: { name: 'SECONDS', completes: 'nothing', default: '3600' },
        help: 'maximum time to wait',
      },
      { name: 'power', value: null, help: 'turn the machine on and boot it from the network' },
      { name: 'restart', value: null, help: 'the same; also restart it if it is on' },
      CONFIG,
      JSON_FLAG,
    ],
    examples: [
      {
        line: 'flasher-web flash aa:bb:cc:dd:ee:01 --power --wait',
        does: 'turn it on, flash it and wait',
      },
      {
        line: 'flasher-web flash aa:bb:cc:dd:ee:01 --image debian-13.img.zst --until booted --json',
        does: 'flash that image and wait until its system runs',
      },
    ],
  },
  once: {
    words: ['once'],
    summary: 'have a machine boot something else once',
    about: [
      'Asks a running server over its API with the token in FLASHER_TOKEN (scope flash, with --power also power). The next network boot starts the boot entry; the one after that does what is configured. An installer may erase every disk of the machine.',
    ],
    positionals: [
      { value: { name: 'MAC', completes: 'nothing' }, help: 'the MAC address of the machine' },
      {
        value: { name: 'ENTRY', completes: 'nothing' },
        optional: true,
        help: 'the name of the boot entry; not with --cancel',
      },
    ],
    flags: [
      {
        name: 'server',
        value: { name: 'URL', completes: 'nothing' },
        help: 'the address of the server (default: http://127.0.0.1:8080, or the port of --config)',
      },
      { name: 'power', value: null, help: 'turn the machine on and boot it from the network' },
      { name: 'restart', value: null, help: 'the same; also restart it if it is on' },
      { name: 'cancel', value: null, help: 'cancel the order' },
      CONFIG,
    ],
    examples: [
      {
        line: 'flasher-web once aa:bb:cc:dd:ee:01 memtest --power',
        does: 'turn it on and test its memory',
      },
    ],
  },
  export: {
    words: ['export'],
    summary: 'export the fleet as a bundle into a folder',
    about: [
      'Writes DIR/inventory.json: every machine with its name, disks and hardware, without assignments or images. Works while the server is running.',
    ],
    positionals: [{ value: FOLDER, help: 'the folder; created if missing' }],
    flags: [CONFIG],
    examples: [
      { line: 'flasher-web export /srv/fleet', does: 'create a bundle for another server' },
    ],
  },
  import: {
    words: ['import'],
    summary: 'import machines: an export bundle, or the state of the earlier line',
    about: [
      'Every machine of the bundle is reset: mode flasher-inventory, no image, no disk, no labels. Its name is kept unless the bundle has another. Other machines are not changed. Works while the server is running.',
      'With --from earlier, DIR is the state folder of a server of the earlier line; it is not changed. Its machines are imported as flasher-inventory, with their host names as names, and with their images if the catalog has exactly one image of that file name. Existing machines are kept. Anything that is not imported is listed.',
    ],
    positionals: [
      {
        value: FOLDER,
        help: 'the folder with inventory.json, or with state.db of the earlier line',
      },
    ],
    flags: [
      {
        name: 'from',
        value: {
          name: 'KIND',
          completes: 'choices',
          choices: ['bundle', 'earlier'],
          default: 'bundle',
        },
        help: 'type of DIR',
      },
      { name: 'dry-run', value: null, help: 'with --from earlier: change nothing, only list' },
      { name: 'json', value: null, help: 'with --from earlier: print one JSON document on stdout' },
      CONFIG,
    ],
    examples: [
      { line: 'flasher-web import /srv/fleet', does: 'import what another server exported' },
      {
        line: 'flasher-web import --from earlier --dry-run /mnt/old/var/lib/flasher',
        does: 'list what would be imported from an earlier server',
      },
    ],
  },
  backup: {
    words: ['backup'],
    summary: 'make a backup now',
    about: ['A backup holds the export bundle and a full copy of the database.'],
    positionals: [],
    flags: [CONFIG],
    examples: [{ line: 'flasher-web backup', does: 'make one in addition to the scheduled ones' }],
  },
  restore: {
    words: ['restore'],
    summary: 'restore a backup',
    about: [
      'Restores machines with their assignments, labels and settings. The current database is kept as .bak. The server must not be running.',
      'Without an argument it lists the backups, newest first, to choose from with the arrow keys.',
    ],
    positionals: [
      {
        value: { name: 'ID|FILE', completes: 'file' },
        optional: true,
        help: 'name of a backup, or path of a database file; without it, choose from a list',
      },
    ],
    flags: [CONFIG],
    examples: [
      { line: 'flasher-web restore', does: 'choose a backup from the list' },
      { line: 'flasher-web restore 2026-11-21T03-00-00Z', does: 'restore the state of that night' },
    ],
  },
  password: {
    words: ['password'],
    summary: 'set a new administrator password and end all sessions',
    about: [
      'Asks for it twice on a terminal, otherwise reads one line from standard input. A running server uses it immediately.',
    ],
    positionals: [],
    flags: [
      GENERATE,
      {
        name: 'print',
        value: null,
        help: 'only print the hash for [admin] password_hash',
      },
      CONFIG,
    ],
    examples: [
      { line: 'flasher-web password', does: 'ask for it and store its hash' },
      { line: 'flasher-web password --generate', does: 'replace a lost password' },
    ],
  },
  ...PEOPLE_COMMANDS,
  'database-status': {
    words: ['database', 'status'],
    summary: 'show which server leads, and whether this one is up to date',
    about: [
      'Asks the database of database.url and changes nothing. Works while the server is running.',
    ],
    positionals: [],
    flags: [CONFIG],
    examples: [{ line: 'flasher-web database status', does: 'check that the database is usable' }],
  },
  'database-import': {
    words: ['database', 'import'],
    summary: 'import the state of this server into an empty shared database',
    about: [
      'Disarms every machine and lists those that were armed, because their orders may have been carried out elsewhere. The state then belongs to that database. The server must not be running.',
    ],
    positionals: [],
    flags: [CONFIG],
    examples: [{ line: 'flasher-web database import', does: 'start to use PostgreSQL' }],
  },
  'database-detach': {
    words: ['database', 'detach'],
    summary: 'detach the state of this server from the shared database',
    about: [
      'Disarms every machine and lists those that were armed, because other servers may still use the database. Works without the database and database.url. The server must not be running.',
    ],
    positionals: [],
    flags: [CONFIG],
    examples: [{ line: 'flasher-web database detach', does: 'continue without a lost database' }],
  },
  'database-accept-older': {
    words: ['database', 'accept-older'],
    summary: 'accept a shared database that is older than the state of this server',
    about: [
      'For a database that was restored from a backup or has lost its last changes. It replaces the state of this server, and every machine is disarmed and listed. The server must not be running.',
    ],
    positionals: [],
    flags: [CONFIG],
    examples: [
      { line: 'flasher-web database accept-older', does: 'after a restore of the database' },
    ],
  },
  'database-forget': {
    words: ['database', 'forget'],
    summary: 'forget a server that is gone for good',
    about: [
      'After an upgrade the new release leads once every server has it. Forgotten servers, and servers that were silent for 10 minutes, are not waited for. A running server is known again a second later. Works while servers are running.',
    ],
    positionals: [
      {
        value: { name: 'NAME', completes: 'nothing' },
        help: 'name of the server, as flasher-web database status shows it',
      },
    ],
    flags: [CONFIG],
    examples: [
      { line: 'flasher-web database forget flasher-2', does: 'stop waiting for flasher-2' },
    ],
  },
  'config-show': {
    words: ['config', 'show'],
    summary: 'show every setting with its value and origin',
    about: ['Secrets are shown as set or unset.'],
    positionals: [],
    flags: [JSON_FLAG, CONFIG],
    examples: [{ line: 'flasher-web config show --json', does: 'print JSON for a program' }],
  },
  'config-check': {
    words: ['config', 'check'],
    summary: 'check the configuration for mistakes',
    about: ['Prints each problem with its location. Exit code 2: the server would not start.'],
    positionals: [],
    flags: [CONFIG],
    examples: [
      {
        line: 'flasher-web config check && systemctl reload flasher-web',
        does: 'reload only if it is valid',
      },
    ],
  },
  'config-reference': {
    words: ['config', 'reference'],
    summary: 'print a reference of all settings (docs/settings.md)',
    about: ['Prints Markdown, generated from the table that reads the configuration.'],
    positionals: [],
    flags: [CONFIG],
    examples: [
      { line: 'flasher-web config reference | less', does: 'read all settings and defaults' },
    ],
  },
} as const satisfies Readonly<Record<string, Command>>

export type CommandName = keyof typeof COMMANDS

const TEXTS = createTextCommands('flasher-web', [CONFIG])

export const COMMAND_LINE: CommandLine = {
  program: 'flasher-web',
  summary: 'the machine server',
  about: [
    'Boots machines over the network, flashes images to their disks, and shows them in a browser.',
  ],
  commands: [...Object.values(COMMANDS), TEXTS.completion, TEXTS.manual],
  exitCodes: [...listExitCodes('server'), ...FLASH_EXITS],
  environment: [
    ...ORDER_ENVIRONMENT,
    ['FLASHER_<SECTION>_<KEY>', 'one setting, for example FLASHER_SERVER_PORT'],
    ...SERVER_ENVIRONMENT,
    ...SOURCE_ENVIRONMENT,
  ],
  files: [
    ...CONFIG_FILES,
    ['<state_dir>/state.db', 'machines, events, people, and settings saved in the browser'],
  ],
  revised: '2026-11-26',
}
