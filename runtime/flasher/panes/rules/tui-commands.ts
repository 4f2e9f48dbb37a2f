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
    'Shows the images on the left and the disks of this machine on the right, with the reason beside each disk that cannot be written. Before the first byte it shows what goes where and what will be lost, and asks; then the disk is looked at once more. Everything that was written is read back.',
    'Without --server the images are those of the image folder. With --server they are those of the server, and a chosen one is streamed straight to the disk: nothing is stored on the way. With --mac as well, the server is notified of a successful flash; if that fails, the status bar says why, and d tries again.',
    'It works on a serial console, without colours, and after the terminal was resized. On a terminal that cannot redraw lines (TERM=dumb) it asks the same questions line by line.',
  ],
  positionals: [],
  flags: [
    textFlag(
      'server',
      'URL',
      'the machine server whose images are offered: an address, or a bare name for http://',
    ),
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
      does: 'choose an image of the server, and notify it in the end',
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
    ['0', 'success: the program was left'],
    ['1', 'failure: the terminal or a file could not be used'],
    ['2', 'misuse: wrong arguments, or no terminal'],
    ['130, 143, 129', 'ended by SIGINT, SIGTERM or SIGHUP'],
  ],
  environment: [
    ['FLASHER_IMAGE_ROOT', `the image folder (default: ${DEFAULT_IMAGE_ROOT})`],
    ['FLASHER_PXE_TOKEN', 'token that proves to the machine server that it booted this machine'],
    ['FLASHER_OFFER_LOOP', 'loop devices to offer as disks, for trying it out; 1 for all'],
    ...SOURCE_ENVIRONMENT,
    ['NO_COLOR, TERM, LC_ALL', 'control colours and line drawing'],
  ],
  files: [
    [DEFAULT_IMAGE_ROOT, 'images of this machine'],
    ['IMAGE.sha256', 'the digest of the image beside it, as sha256sum writes it'],
  ],
  revised: '2026-11-22',
}
