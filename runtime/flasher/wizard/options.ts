/** The wizard's command line ("Wizard command line"); help, completion and manual are generated from it. */
import { type Command, WIZARD_ENVIRONMENT } from '#kit/terminal/command/rules/command.ts'

/** Where `--mac` is given alone. */
export const DEFAULT_SERVER = 'flasher-server'

export const WIZARD = {
  words: [],
  summary: 'choose an image and a disk in a few steps',
  about: [],
  positionals: [],
  flags: [
    {
      name: 'server',
      value: { name: 'URL', completes: 'nothing' },
      repeatable: true,
      help: `the machine server (default with --mac: ${DEFAULT_SERVER})`,
    },
    {
      name: 'mac',
      value: { name: 'MAC', completes: 'nothing' },
      help: 'MAC address of this machine; the server decides the rest',
    },
    {
      name: 'catalog',
      value: { name: 'LOCATION', completes: 'file' },
      help: 'catalog to offer: a TOML file, URL or oras reference',
    },
  ],
  examples: [
    { line: 'flasher', does: 'choose an image from the image folder' },
    {
      line: 'flasher --catalog https://example.org/catalog.toml',
      does: 'choose from a catalog as well',
    },
    {
      line: 'flasher --server lab --mac 52:54:00:12:34:56',
      does: 'do what the machine server has planned for this machine',
    },
  ],
} as const satisfies Command

export const WIZARD_LINE = {
  main: WIZARD,
  environment: WIZARD_ENVIRONMENT,
  about: [
    'Without a command the wizard starts. It asks for an image and a disk, shows what will be lost, and flashes. It can also make an image of a disk. It requires a terminal.',
    'With --mac the machine server decides what happens. If it cannot be reached, the wizard opens with its catalog and says why. Without a terminal, flasher follows the server in plain lines, and exits with 1 where the wizard would open. A bare name after --server means http://. Give --server more than once to name servers to try in turn. --catalog is ignored with --mac.',
  ],
} as const
