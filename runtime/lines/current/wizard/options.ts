/** The wizard's command line ("Wizard command line"): help, completion and manual are made from it. */
import type { Command, Entry } from '../../../core/command/command.ts'

/** Where the server is looked for when `--mac` is given alone. */
export const DEFAULT_SERVER = 'flasher-server'

export const WIZARD = {
  words: [],
  summary: 'choose an image and a disk in a few steps',
  about: [
    'Without a command the wizard starts: it asks for an image and a disk, says what would be lost, and flashes. It needs a terminal. With --mac the machine server decides what happens; when the server cannot be reached, the wizard opens with its catalog and says why. Without a terminal what the server decides is done all the same, in plain lines, and what would end in the wizard is a failure: exit code 1.',
  ],
  positionals: [],
  flags: [
    {
      name: 'server',
      value: { name: 'URL', completes: 'nothing' },
      help: `the machine server: an address, or a bare name for http:// (default with --mac: ${DEFAULT_SERVER})`,
    },
    {
      name: 'mac',
      value: { name: 'MAC', completes: 'nothing' },
      help: "this machine's own MAC address: the server decides what is done with it",
    },
    {
      name: 'catalog',
      value: { name: 'LOCATION', completes: 'file' },
      help: 'catalog to offer besides the images of this machine: a TOML file, an http(s) URL, an oras reference; ignored with --mac',
    },
  ],
  examples: [
    { line: 'flasher', does: 'choose among the images in the image folder' },
    {
      line: 'flasher --catalog https://example.org/catalog.toml',
      does: 'choose among those of a catalog, too',
    },
    {
      line: 'flasher --server lab --mac 52:54:00:12:34:56',
      does: 'do what the machine server wants of this machine',
    },
  ],
} as const satisfies Command

export const WIZARD_ENVIRONMENT: readonly Entry[] = [
  ['FLASHER_DEFAULT_CATALOG', 'the catalog that the wizard offers as its default'],
  ['FLASHER_REGISTER_UEFI_BOOT', 'when 1, the firmware boots a flashed disk once, next'],
  ['FLASHER_PXE_TOKEN', 'what proves to the machine server that it booted this machine'],
  ['FLASHER_OFFER_LOOP', 'loop devices that the wizard offers too, to try it out; 1: all'],
]
