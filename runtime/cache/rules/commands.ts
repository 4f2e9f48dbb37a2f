/** The command table of `flasher-cache`; its parser, help and manual are made from it. */
import type { Command, CommandLine, Value } from '../../core/command/command.ts'
import { SERVER_ENVIRONMENT, SOURCE_ENVIRONMENT } from '../../core/command/environment.ts'
import { CONFIG, CONFIG_FILES, JSON_FLAG } from '../../core/command/server-command.ts'
import { listExitCodes } from '../../core/command/server-exit.ts'
import { createTextCommands } from '../../core/command/text-commands.ts'

const NAME: Value = { name: 'NAME', completes: 'nothing' }

const SERVE = {
  words: ['serve'],
  summary: 'run the cache (what happens without a command, too)',
  about: [
    'Serves images to machines, downloads what is added, and offers image files that are dropped into its folder, until SIGTERM or SIGINT. SIGHUP reads the configuration again.',
    'At the first start without a configured password one is made and printed, once; a flasher-web beside it has the same one.',
  ],
  positionals: [],
  flags: [CONFIG],
  examples: [{ line: 'flasher-cache', does: 'on port 8081, images below the state directory' }],
} as const satisfies Command

const ADD = {
  words: ['add'],
  summary: 'add an image, or all images of a catalog, and download',
  about: [
    'URL is an image (http://, https://, oras://) or a catalog manifest: a URL or a file that ends in .toml, or a repository called catalog (oras://host/lab/catalog:v1). Its images are listed, but not downloaded. The cache must be running.',
  ],
  positionals: [
    { value: { name: 'URL', completes: 'file' }, help: 'the image, or the catalog manifest' },
  ],
  flags: [
    { name: 'name', value: NAME, help: 'what to call it (default: the last part of the URL)' },
    {
      name: 'sha256',
      value: {
        name: 'HEX',
        completes: 'nothing',
        shape: { pattern: /^[0-9a-fA-F]{64}$/, words: '64 hexadecimal digits' },
      },
      help: 'the digest that it must have, else nothing of it is offered',
    },
    { name: 'no-fetch', value: null, help: 'list it only; it is downloaded when it is asked for' },
    { name: 'catalog', value: null, help: 'URL is a catalog, whatever it is called' },
    CONFIG,
  ],
  examples: [
    { line: 'flasher-cache add https://images.example/debian-13.img.zst', does: 'one image' },
    { line: 'flasher-cache add ./catalog.toml', does: 'a list of them' },
    {
      line: 'flasher-cache add oras://registry.example/lab/catalog:v1',
      does: 'one from a registry',
    },
  ],
} as const satisfies Command

const LIST = {
  words: ['list'],
  summary: 'show what the cache holds, and what is on its way',
  about: ['The cache must be running.'],
  positionals: [],
  flags: [JSON_FLAG, CONFIG],
  examples: [{ line: 'flasher-cache list --json', does: 'for a program' }],
} as const satisfies Command

const FETCH = {
  words: ['fetch'],
  summary: 'download an image that is listed, and wait for it',
  about: ['One that is here is fetched anew; what is here stays until the new one is right.'],
  positionals: [{ value: NAME, help: 'as "flasher-cache list" shows it' }],
  flags: [CONFIG],
  examples: [{ line: 'flasher-cache fetch debian-13.img.zst', does: 'brings it here' }],
} as const satisfies Command

const REMOVE = {
  words: ['remove'],
  summary: 'remove an image and its bytes',
  about: [
    'Bytes that another entry shares stay. An image that machines are bound to stays, too, unless it is forced.',
  ],
  positionals: [{ value: NAME, help: 'as "flasher-cache list" shows it' }],
  flags: [{ name: 'force', value: null, help: 'even if machines are bound to it' }, CONFIG],
  examples: [{ line: 'flasher-cache remove debian-12.img.zst', does: 'frees its space' }],
} as const satisfies Command

export const COMMANDS = {
  serve: SERVE,
  add: ADD,
  list: LIST,
  fetch: FETCH,
  remove: REMOVE,
} as const
export type CommandName = keyof typeof COMMANDS

const TEXTS = createTextCommands('flasher-cache', [CONFIG])

export const COMMAND_LINE: CommandLine = {
  program: 'flasher-cache',
  summary: 'keeps images near the machines',
  about: [
    'Downloads images once, checks them, and serves them to any number of machines at a time.',
  ],
  commands: [...Object.values(COMMANDS), TEXTS.completion, TEXTS.manual],
  exitCodes: listExitCodes('cache'),
  environment: [
    ['FLASHER_CACHE_<KEY>', 'one setting: HOST, PORT, DIR, MAX_BYTES or TOKEN'],
    ...SERVER_ENVIRONMENT,
    ...SOURCE_ENVIRONMENT,
  ],
  files: [...CONFIG_FILES, ['<state_dir>/cache', 'images; what is dropped here is offered']],
  revised: '2026-11-22',
}
