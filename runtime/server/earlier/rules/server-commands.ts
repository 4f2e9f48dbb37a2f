/** Earlier line: the command table of its `flasher-web`. */
import type { Command, CommandLine } from '#kit/terminal/command/rules/command.ts'
import { SERVER_ENVIRONMENT, SOURCE_ENVIRONMENT } from '#kit/terminal/command/rules/environment.ts'
import { CONFIG, CONFIG_FILES } from '#kit/terminal/command/rules/server-command.ts'
import { listExitCodes } from '#kit/terminal/command/rules/server-exit.ts'
import { createTextCommands } from '#kit/terminal/command/rules/text-commands.ts'
import { DEFAULT_IMAGE_ROOT } from '#appliance/disk-images.ts'

const SERVE = {
  words: ['serve'],
  summary: 'run the server (the default command)',
  about: [
    'Serves boot scripts, boot files, images, the web pages and the API of the earlier release line until SIGTERM or SIGINT. SIGHUP reloads the configuration.',
  ],
  positionals: [],
  flags: [CONFIG],
  examples: [{ line: 'FLASHER_LINE=earlier flasher-web', does: 'serve /var/lib/flasher/images' }],
} as const satisfies Command

const TEXTS = createTextCommands('flasher-web', [CONFIG])

export type ServerCommandName = 'serve'

export const SERVER_LINE: CommandLine = {
  program: 'flasher-web',
  summary: 'the machine server of the earlier release line',
  about: ['Network-boots machines and has them flash images from a folder of this host.'],
  commands: [SERVE, TEXTS.completion, TEXTS.manual],
  exitCodes: listExitCodes('server'),
  environment: [
    ['FLASHER_IMAGE_ROOT', `the image folder (default: ${DEFAULT_IMAGE_ROOT})`],
    ['FLASHER_STATE_DIR', 'the folder of state.db (default: /var/lib/flasher)'],
    ['FLASHER_BOOT_DIR', 'the files of the live system (default: <state_dir>/boot)'],
    ['FLASHER_WEB_HOST, FLASHER_WEB_PORT', 'where to listen (default: 0.0.0.0 and 8080)'],
    ['FLASHER_BOOT_RELEASE_REPO', 'owner/name of the repository whose releases are fetched'],
    ['FLASHER_RELEASES_BASE_URL', 'the site that hosts those releases'],
    ['FLASHER_WORKFLOW_PROGRAM', 'what runs the workflows of cijoe-online (default: cijoe)'],
    ...SERVER_ENVIRONMENT,
    ...SOURCE_ENVIRONMENT,
  ],
  files: [...CONFIG_FILES, ['<state_dir>/state.db', 'machines and events']],
  revised: '2026-11-22',
}
