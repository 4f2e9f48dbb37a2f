/** Earlier line: the command table of `flasher-tui` ("flasher-tui"). */
import {
  textFlag,
  type Command,
  type CommandLine,
  SOURCE_ENVIRONMENT,
  createTextCommands,
} from '#kit/terminal/command/rules/command.ts'
import { DEFAULT_IMAGE_ROOT } from '#appliance/disk-images.ts'

const TUI = {
  words: [],
  summary: 'choose an image and a disk side by side, and flash',
  about: [
    'Shows the images on the left and the disks of this machine on the right, with the reason beside each disk that cannot be written. Before writing, it shows what will be lost and asks for a confirmation. Everything that was written is verified.',
    'Without --server you choose from the image folder. With --server you choose from the images of the server, which are streamed straight to the disk. With --mac, the server is also notified of a successful flash; if that fails, the status bar says why, and d retries.',
    'It works on serial consoles and without colours. On a terminal that cannot redraw lines (TERM=dumb) it asks line by line.',
  ],
  positionals: [],
  flags: [
    textFlag('server', 'URL', 'machine server whose images are offered; a bare name means http://'),
    textFlag(
      'mac',
      'MAC',
      'with --server: notify it of a successful flash of the machine with this MAC address',
    ),
  ],
  examples: [
    { line: 'flasher-tui', does: 'choose an image from the image folder' },
    {
      line: 'flasher-tui --server http://10.0.0.1:8080 --mac 52:54:00:12:34:56',
      does: 'choose an image of the server, and notify it at the end',
    },
  ],
} as const satisfies Command

const TEXTS = createTextCommands('flasher-tui')

export const TUI_LINE: CommandLine = {
  program: 'flasher-tui',
  summary: 'flash an image to a disk, chosen in two panes',
  about: ['The terminal user interface of the earlier release line.'],
  main: TUI,
  mainTitle: 'USE',
  commands: [TEXTS.completion, TEXTS.manual],
  exitCodes: [
    ['0', 'success: you left the program'],
    ['1', 'failure: the terminal or a file could not be used'],
    ['2', 'misuse: wrong arguments, or no terminal'],
    ['130, 143, 129', 'ended by SIGINT, SIGTERM or SIGHUP'],
  ],
  environment: [
    ['FLASHER_IMAGE_ROOT', `the image folder (default: ${DEFAULT_IMAGE_ROOT})`],
    ['FLASHER_PXE_TOKEN', 'token with which the machine server recognises this machine'],
    ['FLASHER_OFFER_LOOP', 'loop devices to offer as disks, for tests; 1 for all'],
    ...SOURCE_ENVIRONMENT,
    ['NO_COLOR, TERM, LC_ALL', 'control colours and line drawing'],
  ],
  files: [
    [DEFAULT_IMAGE_ROOT, 'images of this machine'],
    ['IMAGE.sha256', 'SHA-256 of the image beside it, as written by sha256sum'],
  ],
  revised: '2026-11-22',
}
