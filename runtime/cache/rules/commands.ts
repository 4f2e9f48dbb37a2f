/** The command table of `flasher-cache`; its parser, help and manual are made from it. */
import {
  type Command,
  type CommandLine,
  type Value,
  SERVER_ENVIRONMENT,
  SOURCE_ENVIRONMENT,
  createTextCommands,
  CONFIG,
  CONFIG_FILES,
  JSON_FLAG,
  listExitCodes,
} from '#kit/terminal/command/rules/command.ts'

const NAME: Value = { name: 'NAME', completes: 'nothing' }

const DIGEST: Value = {
  name: 'HEX',
  completes: 'nothing',
  shape: { pattern: /^[0-9a-fA-F]{64}$/, words: '64 hexadecimal digits' },
}

const SERVE = {
  words: ['serve'],
  summary: 'run the cache (the default command)',
  about: [
    'Serves images to machines, downloads added images, and offers image files that are copied into its folder, until SIGTERM or SIGINT. SIGHUP reloads the configuration.',
    'On the first start, if no password is configured, one is generated and printed once; flasher-web on the same host shares it.',
  ],
  positionals: [],
  flags: [CONFIG],
  examples: [
    { line: 'flasher-cache', does: 'listen on port 8081, keep images in the state directory' },
  ],
} as const satisfies Command

const ADD = {
  words: ['add'],
  summary: 'add an image and download it, or add all images of a catalog',
  about: [
    'URL is an image (http://, https://, oras://, s3://) or a catalog manifest: a URL or a file that ends in .toml, or a repository named catalog (oras://host/lab/catalog:v1). The images of a catalog are listed but not downloaded yet. The cache must be running.',
  ],
  positionals: [
    { value: { name: 'URL', completes: 'file' }, help: 'the image, or the catalog manifest' },
  ],
  flags: [
    { name: 'name', value: NAME, help: 'name of the image (default: the last part of the URL)' },
    {
      name: 'sha256',
      value: DIGEST,
      help: 'expected digest; an image with another one is not offered',
    },
    {
      name: 'index-sha256',
      value: DIGEST,
      help: 'digest of the frame index of an .img.zst, beside --sha256; "flasher inspect image" shows it',
    },
    {
      name: 'any-content',
      value: null,
      help: 'offer it even if it looks like something else than a disk image, such as text',
    },
    { name: 'no-fetch', value: null, help: 'do not download it until it is requested' },
    { name: 'catalog', value: null, help: 'treat URL as a catalog, whatever its name' },
    CONFIG,
  ],
  examples: [
    { line: 'flasher-cache add https://images.example/debian-13.img.zst', does: 'add one image' },
    { line: 'flasher-cache add ./catalog.toml', does: 'add all images of a catalog' },
    {
      line: 'flasher-cache add oras://registry.example/lab/catalog:v1',
      does: 'add a catalog from a registry',
    },
  ],
} as const satisfies Command

const LIST = {
  words: ['list'],
  summary: 'list the images and their downloads',
  about: ['The cache must be running.'],
  positionals: [],
  flags: [{ name: 'bytes', value: null, help: 'show sizes in bytes' }, JSON_FLAG, CONFIG],
  examples: [{ line: 'flasher-cache list --json', does: 'print JSON for a program' }],
} as const satisfies Command

const FETCH = {
  words: ['fetch'],
  summary: 'download a listed image and wait for it',
  about: [
    'An image that is already cached is downloaded again; the old copy is kept until the new one is verified.',
  ],
  positionals: [{ value: NAME, help: 'as "flasher-cache list" shows it' }],
  flags: [CONFIG],
  examples: [{ line: 'flasher-cache fetch debian-13.img.zst', does: 'download it' }],
} as const satisfies Command

const REMOVE = {
  words: ['remove'],
  summary: 'remove an image and free its space',
  about: [
    'Content shared with another entry is kept. An image that is assigned to machines is refused without --force.',
  ],
  positionals: [{ value: NAME, help: 'as "flasher-cache list" shows it' }],
  flags: [{ name: 'force', value: null, help: 'remove it even if machines use it' }, CONFIG],
  examples: [{ line: 'flasher-cache remove debian-12.img.zst', does: 'remove an old image' }],
} as const satisfies Command

const TOKEN = {
  words: ['token'],
  summary: 'make a one-time token for uploading a captured image',
  about: [
    'Prints the token, which is good for one upload under NAME and must be used within a day. The image is offered after an operator has accepted it. The cache must be running.',
  ],
  positionals: [{ value: NAME, help: 'name of the image; it must end in .img.zst' }],
  flags: [JSON_FLAG, CONFIG],
  examples: [{ line: 'flasher-cache token web-42.img.zst', does: 'print a token' }],
} as const satisfies Command

const COMMANDS = {
  serve: SERVE,
  add: ADD,
  list: LIST,
  fetch: FETCH,
  remove: REMOVE,
  token: TOKEN,
} as const
export type CacheCommand = keyof typeof COMMANDS

const TEXTS = createTextCommands('flasher-cache', [CONFIG])

export const COMMAND_LINE: CommandLine = {
  program: 'flasher-cache',
  summary: 'keeps images near the machines',
  about: ['Downloads images once, verifies them, and serves them to any number of machines.'],
  commands: [...Object.values(COMMANDS), TEXTS.completion, TEXTS.manual],
  exitCodes: listExitCodes('cache'),
  environment: [
    [
      'FLASHER_CACHE_<KEY>',
      'one setting: HOST, PORT, DIR, FOLLOW, MAX_BYTES, UPSTREAM_CHECK_INTERVAL or TOKEN',
    ],
    ...SERVER_ENVIRONMENT,
    ...SOURCE_ENVIRONMENT,
  ],
  files: [...CONFIG_FILES, ['<state_dir>/cache', 'images; files copied here are offered']],
  revised: '2026-11-22',
}
